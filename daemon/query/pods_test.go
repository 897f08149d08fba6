package query

import (
	"fmt"
	"strings"
)

// testPod returns a pod of 3.7 KB, the size of small real pods.
func testPod(i int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-%d","namespace":"ns-%d",`+
			`"uid":"0b1c2d3e-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-%02dT10:00:00Z",`,
		i, i%10, i, i, i%28+1)
	fmt.Fprintf(&b,
		`"labels":{"app":"web-%d","app.kubernetes.io/name":"web","pod-template-hash":"5d59d67564","tier":"%s",`+
			`"version":"%d"},`, i%7, []string{"front", "back"}[i%2], i%5)
	b.WriteString(`"annotations":{"kubernetes.io/config.source":"api","note":"` +
		strings.Repeat("some text without meaning; --", 20) + `"},`)
	b.WriteString(`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d59d67564",` +
		`"uid":"9a","controller":true,"blockOwnerDeletion":true}],"managedFields":[`)
	for j := range 3 {
		if j > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b,
			`{"manager":"m%d","operation":"Update","apiVersion":"v1","time":"2026-01-01T10:00:00Z",`+
				`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},`+
				`"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}},`+
				`"f:dnsPolicy":{},"f:restartPolicy":{}}}}`, j)
	}
	b.WriteString(`]},"spec":{"volumes":[{"name":"kube-api-access-x",` +
		`"projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],` +
		`"defaultMode":420}}],"containers":[`)
	for j := range 3 {
		if j > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b,
			`{"name":"c%d","image":"registry.example.com/team/app-%d:v1.%d","args":["--a=1","--b=2","--verbose"],`+
				`"ports":[{"containerPort":%d,"protocol":"TCP"}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],`+
				`"resources":{"limits":{"cpu":"500m","memory":"%dMi"},"requests":{"cpu":"100m","memory":"64Mi"}},`+
				`"imagePullPolicy":"IfNotPresent"}`, j, j, i%3, 8000+j, 64<<(i%6))
	}
	fmt.Fprintf(&b,
		`],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",`+
			`"serviceAccountName":"default","nodeName":"node-%d","schedulerName":"default-scheduler","priority":%d},`, i%50, i%4)
	fmt.Fprintf(&b,
		`"status":{"phase":"%s","podIP":"10.0.%d.%d","conditions":[{"type":"Ready","status":"%s",`+
			`"lastTransitionTime":"2026-01-01T10:00:05Z"},{"type":"Initialized","status":"True"}],`+
			`"containerStatuses":[{"name":"c0","ready":true,"restartCount":%d}]}}`,
		[]string{"Running", "Running", "Pending"}[i%3], i/250%250, i%250, []string{"True", "False"}[i%2], i%6)
	return []byte(b.String())
}
