package structures

import "k8s.io/client-go/tools/cache"

type clientGo struct{ cache.Indexer }

func newClientGo() Candidate {
	return clientGo{cache.NewIndexer(func(obj any) (string, error) { return obj.(*Object).Key, nil }, cache.Indexers{
		byNamespace: func(obj any) ([]string, error) { return []string{obj.(*Object).Namespace}, nil },
		byApp:       func(obj any) ([]string, error) { return []string{obj.(*Object).App}, nil },
	})}
}

func (c clientGo) Update(batch []*Object) {
	if len(batch) == 1 {
		_ = c.Indexer.Update(batch[0]) // fails only where the key function does
		return
	}
	all := make([]cache.Transaction, len(batch))
	for i, o := range batch {
		all[i] = cache.Transaction{Object: o, Type: cache.TransactionTypeUpdate}
	}
	c.Indexer.(cache.TransactionStore).Transaction(all...)
}

func (c clientGo) Get(key string) *Object {
	obj, ok, _ := c.GetByKey(key)
	if !ok {
		return nil
	}
	return obj.(*Object)
}

func (c clientGo) By(index, value string, yield func(*Object)) {
	found, _ := c.ByIndex(index, value)
	for _, obj := range found {
		yield(obj.(*Object))
	}
}

func (c clientGo) All(yield func(*Object)) {
	for _, obj := range c.List() {
		yield(obj.(*Object))
	}
}
