package cluster

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/testpods"
)

// together is how many pods are written in one transaction, within etcd's limits of 128 operations and 1.5 MiB.
const together = 100

// Fill writes n realistic pods into etcd, in the encoding in which the API server stores them, and waits until the
// server serves them all.
func (c *Cluster) Fill(ctx context.Context, n int) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + c.etcd}, DialTimeout: 10 * time.Second})
	if err != nil {
		return fmt.Errorf("reach the cluster's etcd: %w", err)
	}
	defer client.Close()
	set := testpods.New(feed.Seed, testpods.DefaultTemplates)
	for i := 0; i < n; {
		var puts []clientv3.Op
		for ; i < n && len(puts) < together; i++ {
			pod := set.Pod(i)
			pod.ResourceVersion = "" // etcd's own revision is the version
			stored, err := feed.Envelope(pod)
			if err != nil {
				return err
			}
			puts = append(puts, clientv3.OpPut("/registry/pods/"+pod.Namespace+"/"+pod.Name, string(stored)))
		}
		if _, err := client.Txn(ctx).Then(puts...).Commit(); err != nil {
			return fmt.Errorf("write pods into etcd, after %d: %w", i, err)
		}
	}
	return c.waitCount(ctx, n)
}

// waitCount waits until the API server serves n pods.
func (c *Cluster) waitCount(ctx context.Context, n int) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	have := -1
	for deadline := time.Now().Add(time.Minute); have != n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("the API server has %d of %d pods after a minute", have, n)
		}
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("count the pods: %w", err)
		}
		have = len(list.Items)
		if list.RemainingItemCount != nil {
			have += int(*list.RemainingItemCount)
		}
	}
	return nil
}
