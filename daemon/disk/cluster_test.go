package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
)

// twoClusters writes an object and documents of two clusters.
func twoClusters(t *testing.T, d *Disk) (eu, us Resource) {
	t.Helper()
	eu, us = Resource{"eu", "apps", "v1", "deployments"}, Resource{"us", "apps", "v1", "deployments"}
	b := d.NewBatch()
	for _, res := range []Resource{eu, us} {
		b.SetCluster(res.Cluster, "uid-of-"+res.Cluster)
		b.SetDocument(res.Cluster, "discovery", []byte("of "+res.Cluster))
		if err := b.Open(res, ResourceOptions{History: true}); err != nil {
			t.Fatal(err)
		}
		b.Put(res, newMirror(t, res).state(t, "ns/a", 5, start, jsonOf("ns/a", 1, 5, res.Cluster)))
		b.Reach(res, "5", start)
	}
	mustCommit(t, b)
	return eu, us
}

func TestAClusterWithAnotherUIDDropsEverythingOfTheOldOne(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	defer mustClose(t, d)
	eu, us := twoClusters(t, d)
	b := d.NewBatch()
	b.SetCluster("eu", "another")
	mustCommit(t, b)
	if _, err := d.Restore(eu); !errors.As(err, new(*UnknownError)) {
		t.Errorf("Restore of the old cluster: %v", err)
	}
	if doc, err := d.Document("eu", "discovery"); doc != nil || err != nil {
		t.Errorf("the old cluster's document is %q, %v", doc, err)
	}
	if all, err := d.Resources("eu"); len(all) > 0 || err != nil {
		t.Errorf("the old cluster's resources are %v, %v", all, err)
	}
	all, err := d.Clusters()
	if err != nil || len(all) != 2 || all[0].UID != "another" || all[1].UID != "uid-of-us" {
		t.Errorf("the clusters are %+v, %v", all, err)
	}
	if r, err := d.Restore(us); err != nil || len(restoredStates(t, r)) != 1 {
		t.Errorf("the other cluster has changed: %v", err)
	}
}

func TestDropClusterRemovesItAndNothingElse(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	defer mustClose(t, d)
	eu, us := twoClusters(t, d)
	if err := d.DropCluster("eu"); err != nil {
		t.Fatal(err)
	}
	if err := d.DropCluster("eu"); err == nil {
		t.Error("a cluster that does not exist was dropped")
	}
	if _, err := d.Restore(eu); !errors.As(err, new(*UnknownError)) {
		t.Errorf("Restore of the dropped cluster: %v", err)
	}
	if doc, err := d.Document("eu", "discovery"); doc != nil || err != nil {
		t.Errorf("the document of the dropped cluster is %q, %v", doc, err)
	}
	if r, err := d.Restore(us); err != nil || len(restoredStates(t, r)) != 1 {
		t.Errorf("the other cluster has changed: %v", err)
	}
	if err := d.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	b.Put(eu, State{Key: "ns/a", Version: "6", Time: start})
	if err := b.Commit(); err == nil {
		t.Error("an object of the dropped cluster was written")
	}
}

func TestAnotherFingerprintDropsTheHistory(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	defer mustClose(t, d)
	eu, _ := twoClusters(t, d)
	b := d.NewBatch()
	if err := b.Open(eu, ResourceOptions{History: true, Fingerprint: "redacts more"}); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, b)
	if _, err := d.Restore(eu); !errors.As(err, new(*UnknownError)) {
		t.Errorf("Restore with another fingerprint: %v", err)
	}
	for c, err := range d.History(eu, Filter{}, start, start) {
		t.Errorf("the history has %v, %v", c.Key, err)
	}
	all, err := d.Resources("eu")
	if err != nil || len(all) != 1 || all[0].Fingerprint != "redacts more" || all[0].Objects != 0 {
		t.Errorf("the resources are %+v, %v", all, err)
	}
}

func TestDocumentsComeBackAndCanBeReplaced(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	defer mustClose(t, d)
	b := d.NewBatch()
	b.SetCluster("eu", "uid")
	noise := make([]byte, number(1<<20, MaxDocument))
	for i, r := 0, rand.New(rand.NewPCG(1, 1)); i < len(noise); i++ {
		noise[i] = byte(r.Uint32())
	}
	want := map[string][]byte{"empty": {}, "discovery": []byte("{}"), "openapi": bytes.Repeat([]byte("schema "), 100_000),
		"noise": noise, "noise/part": []byte("x")}
	for name, data := range want {
		b.SetDocument("eu", name, data)
	}
	mustCommit(t, b)
	b.SetDocument("eu", "noise", []byte("short now"))
	b.SetDocument("eu", "discovery", nil)
	want["noise"] = []byte("short now")
	delete(want, "discovery")
	mustCommit(t, b)
	names, err := d.Documents("eu")
	if err != nil || !slices.Equal(names, []string{"empty", "noise", "noise/part", "openapi"}) {
		t.Errorf("the documents are %q, %v", names, err)
	}
	for name, data := range want {
		if got, err := d.Document("eu", name); err != nil || got == nil || !bytes.Equal(got, data) {
			t.Errorf("the document %s has %d bytes, want %d: %v", name, len(got), len(data), err)
		}
	}
	b.SetDocument("eu", "huge", make([]byte, MaxDocument+1))
	if err := b.Commit(); err == nil {
		t.Error("a document that is too large was written")
	}
}

// Bases that only dropped history has used are removed, and all that is left can be read.
func TestUnusedBasesAreRemoved(t *testing.T) {
	o := quiet(vfs.NewMem())
	d := mustOpen(t, "data", o)
	defer mustClose(t, d)
	beginResource(t, d, pods, ResourceOptions{History: true})
	m := newMirror(t, pods)
	b := d.NewBatch()
	version := 0
	const families = 40
	for family := range families {
		for i := range 20 {
			version++
			key := object.Key([]string{"ns/a", "ns/b", "ns/c"}[i%3])
			b.Put(pods, m.state(t, key, version, start, jsonOf(key, family, version, "x")))
		}
		b.Reach(pods, "1", start)
		mustCommit(t, b)
	}
	bases := func() (n int) {
		v, err := d.view(pods)
		if err != nil {
			t.Fatal(err)
		}
		defer v.close()
		if err := scan(v.snap, appendData(nil, v.desc.id, kindBase), func(_, _ []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := bases()
	all, err := d.oldest()
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := d.dropOldest(t.Context(), &all[0]); err != nil {
		t.Fatal(err)
	}
	if err := d.collect(pods, all[0].desc.id); err != nil {
		t.Fatal(err)
	}
	if n := bases(); before < families || n > 6 {
		t.Errorf("%d of %d bases are left for 3 objects", n, before)
	}
	b.Put(pods, m.state(t, "ns/d", version+1, start, jsonOf("ns/d", families-1, version+1, "x")))
	mustCommit(t, b)
	if r, err := d.Restore(pods); err != nil || len(restoredStates(t, r)) != 4 {
		t.Error(err)
	}
	if damage, err := d.Verify(t.Context(), nil); err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
}
