// Package pack keeps encoded objects in as few bytes as it can, each as its difference to a sibling.
//
// Objects of Kubernetes come in families: the pods of a template differ in a name, a few ids, times and
// addresses. A Packer knows nothing of that, nor of any encoding. It finds for each object the one that is most like
// it among a few that it keeps as bases, and stores what is different: 158 bytes for a pod of 6.9 KB in protobuf, 118
// for the same of 9.8 KB in JSON, most of which are random ids. The bases, the index that finds them and a cache come
// to less than another 100 bytes a pod when a base has a hundred siblings.
//
// Promises:
//
//  1. What was packed comes back byte for byte, whatever it is (P15).
//  2. Append is for any goroutine at any time, also after Release, and waits for no writer.
//  3. Damaged data and a wrong context are errors, but for one case in 2^24; never a panic, never another's memory.
//  4. The data of no object is longer than its own bytes and 4 more. A base that helps nobody costs 550 bytes
//     besides; there are at most 1024 such, one more for every 16 objects, and 3 for each base that helped.
//  5. What is not used is not kept: a base lives as long as something that was packed against it.
//  6. A base that siblings have moved away from is replaced by a new one, while stored objects stay as they are.
//  7. All memory is counted in Stats. No goroutine is started; what is shared between Packers is scratch in pools
//     that the
//     collector may empty.
//
// Use:
//
//	p := pack.New()
//	k := p.Pack(encoded, key+uid+version)
//	encoded, err := k.Append(nil, key+uid+version)
//	p.Release(k)
package pack
