package access

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// retryDetection is the pause before a cluster that did not say how it authorizes is asked again.
const retryDetection = time.Minute

// detector finds out whether a cluster has another authorizer than RBAC, by one SelfSubjectRulesReview.
//
// In the answer, an API server lists the rules of all its authorizers. For a webhook, which has no list, it says so in
// the evaluationError. It cannot be found out in this way whether there is an ABAC authorizer, whose rules look like
// those of RBAC. The Node authorizer decides only about users that are nodes.
type detector struct {
	cluster string
	review  func(ctx context.Context, namespace string) (authorizationv1.SubjectRulesReviewStatus, error)
	log     *slog.Logger
	signal  func() // called after mode has changed

	cancel  context.CancelFunc // of the request for config
	config  uint64             // see fleet.Cluster.ConfigNumber
	started bool
	work    sync.WaitGroup

	mu    sync.Mutex
	found Mode
}

// mode returns ModeRBAC or ModeReview, or "" if it is not known yet.
func (d *detector) mode() Mode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

// start asks the cluster, unless it was asked with the same credentials before. Only one goroutine may call start and
// close.
func (d *detector) start(config uint64) {
	if d.started && d.config == config {
		return
	}
	if d.started {
		d.cancel()
	}
	d.started, d.config = true, config
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.work.Go(func() { d.detect(ctx) })
}

// close ends a request in progress.
func (d *detector) close() {
	if d.started {
		d.cancel()
	}
	d.work.Wait()
}

// detect asks the cluster until it answers.
func (d *detector) detect(ctx context.Context) {
	for failed := false; ; failed = true {
		status, err := d.review(ctx, "default")
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			d.use(authorizationMode(&status))
			return
		}
		if !failed {
			d.log.Warn("it is not known whether RBAC alone decides about requests in a cluster; RBAC is used",
				"cluster", d.cluster, "error", err)
		}
		d.mu.Lock()
		first := d.found == ""
		d.mu.Unlock()
		if first {
			d.use(ModeRBAC)
		}
		select {
		case <-time.After(retryDetection):
		case <-ctx.Done():
			return
		}
	}
}

// use sets the mode.
func (d *detector) use(m Mode) {
	d.mu.Lock()
	was := d.found
	d.found = m
	d.mu.Unlock()
	if m == was {
		return
	}
	if m == ModeReview {
		d.log.Info("a cluster has another authorizer than RBAC: it is asked about each request; to change that, set its "+
			"authorization in the access file", "cluster", d.cluster, "authorization", m)
	}
	d.signal()
}

// noRuleList is what an API server says of an authorizer that cannot list rules, after the authorizer's name.
const noRuleList = " authorizer does not support user rule resolution"

// authorizationMode returns ModeReview if an answer names an authorizer that is neither RBAC nor Node.
func authorizationMode(status *authorizationv1.SubjectRulesReviewStatus) Mode {
	parts := strings.Split(status.EvaluationError, noRuleList)
	for _, before := range parts[:len(parts)-1] {
		name := before[strings.LastIndexAny(before, " [,")+1:]
		if name != "node" {
			return ModeReview
		}
	}
	return ModeRBAC
}
