// Package pack keeps encoded objects in few bytes, each as its difference to a similar object.
//
// Kubernetes objects come in families: the pods of a template differ in a name, a few IDs, times and addresses. A
// Packer knows nothing of that, nor of any encoding. It finds for each object the most similar one among those that it
// keeps as bases, and stores the difference. Objects with the same base are siblings.
//
// Promises:
//
//  1. What was packed is unpacked byte for byte, whatever it is (P15).
//  2. Any goroutine may call Append at any time, also after Release. It does not wait for the Packer.
//  3. Damaged data and a wrong context are errors, except for one case in 2^24. They never cause a panic or a read of
//     other memory.
//  4. The data of an object is at most 4 bytes longer than its own bytes. A base that no other object uses costs 550
//     bytes in addition; there are at most 1024 such bases, one more for every 16 objects, and 3 more for each base
//     that helped.
//  5. What is not used is not kept: a base lives as long as something that was packed against it.
//  6. A base whose siblings have changed is replaced by a new one, while stored objects stay as they are.
//  7. Stats counts all memory. There are no goroutines; Packers share only scratch memory in pools.
//
// Use:
//
//	p := pack.New()
//	data, ref := p.Pack(nil, encoded, key+uid+version)
//	k := ref.Packed(string(data))
//	encoded, err := k.Append(nil, key+uid+version)
//	p.Release(k)
package pack
