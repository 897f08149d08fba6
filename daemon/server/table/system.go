package table

import (
	"fmt"
	"time"

	flowv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const flowGroup = "flowcontrol.apiserver.k8s.io"

// Kinds that the API server keeps about itself.
var system = []entry{
	of(flowGroup, "FlowSchema", flowSchema, "v1", "v1beta3"),
	of(flowGroup, "PriorityLevelConfiguration", priorityLevel, "v1", "v1beta3"),
	of("apiregistration.k8s.io", "APIService", registeredService),
}

func flowSchema(f *flowv1.FlowSchema, now time.Time) Row {
	method := none
	if f.Spec.DistinguisherMethod != nil {
		method = string(f.Spec.DistinguisherMethod.Type)
	}
	dangling := "?"
	for _, c := range f.Status.Conditions {
		if c.Type == flowv1.FlowSchemaConditionDangling {
			dangling = string(c.Status)
			break
		}
	}
	return cells(f.Name, f.Spec.PriorityLevelConfiguration.Name, int64(f.Spec.MatchingPrecedence), method,
		born(&f.ObjectMeta, now), dangling)
}

func priorityLevel(p *flowv1.PriorityLevelConfiguration, now time.Time) Row {
	var shares, queues, hand, length any = none, none, none, none
	if l := p.Spec.Limited; l != nil {
		if l.NominalConcurrencyShares != nil {
			shares = int64(*l.NominalConcurrencyShares)
		}
		if q := l.LimitResponse.Queuing; q != nil {
			queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
		}
	} else if e := p.Spec.Exempt; e != nil && val(e.NominalConcurrencyShares) != 0 {
		shares = int64(*e.NominalConcurrencyShares)
	}
	return cells(p.Name, string(p.Spec.Type), shares, queues, hand, length, born(&p.ObjectMeta, now))
}

// apiService has the fields of an APIService that are printed. Its Go type is in a module that is not worth another
// dependency.
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func registeredService(s *apiService, now time.Time) Row {
	where := "Local"
	if r := s.Spec.Service; r != nil {
		where = r.Namespace + "/" + r.Name
	}
	available := "Unknown"
	for _, c := range s.Status.Conditions {
		if c.Type != "Available" {
			continue
		}
		available = string(c.Status)
		if c.Status != metav1.ConditionTrue {
			available = fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
		break
	}
	return cells(s.Name, where, available, born(&s.ObjectMeta, now))
}
