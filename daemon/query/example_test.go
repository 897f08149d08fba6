package query_test

import (
	"context"
	"fmt"

	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// pods returns a view of one cluster. Each pod is JSON.
func pods(cluster string, objects map[object.Key]string) query.View[string] {
	w, err := store.New(store.Options[string]{})
	if err != nil {
		panic(err)
	}
	w.Begin()
	for key, raw := range objects {
		w.Put(object.Item[string]{Key: key, Size: len(raw), Value: raw})
	}
	w.Commit()
	return query.View[string]{Cluster: cluster, Snapshot: w.Reader().Snapshot()}
}

func fleet() []query.View[string] {
	return []query.View[string]{
		pods("eu", map[object.Key]string{
			"web/a": `{"metadata":{"labels":{"app":"shop"}},"spec":{"memory":"500Mi","restarts":0}}`,
			"web/b": `{"metadata":{"labels":{"app":"shop"}},"spec":{"memory":"1Gi","restarts":7}}`,
		}),
		pods("us", map[object.Key]string{
			"web/a": `{"metadata":{"labels":{"app":"shop"}},"spec":{"memory":"2Gi","restarts":3}}`,
			"db/m":  `{"metadata":{"labels":{"app":"db"}},"spec":{"memory":"16Gi","restarts":1}}`,
		}),
	}
}

func bytesOf(e *store.Entry[string], dst []byte) []byte { return append(dst, e.Object()...) }

func Example() {
	engine, err := query.NewEngine(bytesOf)
	if err != nil {
		fmt.Println(err)
		return
	}
	selection, err := query.ParseSelection("app=shop", "", "spec.restarts > 0 || cluster == 'eu'")
	if err != nil {
		fmt.Println(err)
		return
	}
	order, err := query.ParseOrder("-spec.memory")
	if err != nil {
		fmt.Println(err)
		return
	}
	req := query.Request{Resource: "pods", Selection: selection, Order: order, Limit: 2}
	for {
		page, err := engine.List(context.Background(), req, fleet())
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, item := range page.Items {
			fmt.Println(item.Cluster, item.Entry.Key)
		}
		fmt.Println("remaining:", page.Remaining)
		if req.Continue = page.Continue; req.Continue == "" {
			return
		}
	}
	// Output:
	// us web/a
	// eu web/b
	// remaining: 1
	// eu web/a
	// remaining: 0
}

func ExampleDoc() {
	doc := query.NewDoc([]byte(`{"metadata":{"labels":{"app.kubernetes.io/name":"shop"}},` +
		`"spec":{"containers":[{"image":"shop:1.2"}]}}`))
	for _, text := range []string{"spec.containers[0].image", "metadata.labels['app.kubernetes.io/name']",
		`.metadata.labels.app\.kubernetes\.io/name`, "{.spec.nodeName}"} {
		path, err := query.ParsePath(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		value, found := doc.Lookup(path)
		fmt.Println(value, found)
	}
	_, err := query.ParsePath("spec..nodeName")
	fmt.Println(err)
	// Output:
	// shop:1.2 true
	// shop true
	// shop true
	// <nil> false
	// parse path "spec..nodeName": at character 6: a name is missing: invalid request
}

func ExampleCompileWhere() {
	where, err := query.CompileWhere("has(spec.nodeName) && spec.containers.exists(c, c.image.endsWith(':latest'))")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, raw := range []string{
		`{"spec":{"nodeName":"n1","containers":[{"image":"shop:latest"}]}}`,
		`{"spec":{"nodeName":"n1","containers":[{"image":"shop:1.2"}]}}`,
		`{"kind":"ConfigMap"}`,
	} {
		fmt.Println(where.Matches(context.Background(), "eu", query.NewDoc([]byte(raw))))
	}
	_, err = query.CompileWhere("spec.nodeName = 'n1'")
	fmt.Println(err)
	// Output:
	// true <nil>
	// false <nil>
	// false <nil>
	// the expression "spec.nodeName = 'n1'" is wrong at column 15: a single = is not an operator; compare with ==
}

// A user that may see only one namespace of one cluster, and one pod elsewhere.
func ExampleVisible() {
	engine, err := query.NewEngine(bytesOf)
	if err != nil {
		fmt.Println(err)
		return
	}
	views := fleet()
	views[0].Visible = &query.Visible{Namespaces: []string{"web"}}
	for i := range views[1:] {
		views[i+1].Visible = &query.Visible{}
	}
	req := query.Request{User: "ann", Resource: "pods", CountOnly: true}
	counted, err := engine.List(context.Background(), req, views)
	fmt.Println(counted.Count, err)
	// Output:
	// 2 <nil>
}
