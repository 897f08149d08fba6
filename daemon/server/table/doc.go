// Package table makes the Tables that an API server sends to clients that accept
// "application/json;as=Table;v=v1;g=meta.k8s.io": the columns of a kind, and the cells of each of its objects, from the
// object's JSON alone.
//
//	p := table.For(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
//	columns := p.Columns()
//	row, err := p.Row(raw, time.Now())
//
// The package promises:
//
//   - The columns and cells are those of a Kubernetes 1.36 server, including wide columns (priority 1), descriptions
//     and row conditions. A test compares them with the Tables of a real server for every kind below, with objects in
//     many states.
//   - Ages are relative to the time that the caller passes. Nothing reads the clock.
//   - No JSON makes Row panic. An object that does not fit its kind is an error, which names the kind and quotes
//     nothing of the object, which may be a secret.
//   - A Printer is safe for concurrent use.
//
// # Kinds with columns of their own
//
//   - core: ComponentStatus, ConfigMap, Endpoints, Event, Namespace, Node, PersistentVolume,
//     PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret,
//     Service, ServiceAccount
//   - apps: ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
//   - batch: CronJob, Job
//   - autoscaling: HorizontalPodAutoscaler, v1 and v2
//   - networking.k8s.io, discovery.k8s.io: IngressClass, Ingress, IPAddress, NetworkPolicy,
//     ServiceCIDR; EndpointSlice
//   - storage.k8s.io: CSIDriver, CSINode, StorageClass, VolumeAttachment, VolumeAttributesClass
//   - rbac.authorization.k8s.io: ClusterRoleBinding, RoleBinding
//   - events.k8s.io: Event
//   - policy, scheduling.k8s.io, node.k8s.io, coordination.k8s.io, certificates.k8s.io:
//     PodDisruptionBudget; PriorityClass; RuntimeClass; Lease; CertificateSigningRequest
//   - resource.k8s.io: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
//   - admissionregistration.k8s.io: the webhook configurations, the admission policies and
//     their bindings
//   - flowcontrol.apiserver.k8s.io, apiregistration.k8s.io: FlowSchema,
//     PriorityLevelConfiguration; APIService
//
// Every other kind has Name and Created At, as at the server for Role, ClusterRole, LimitRange, CSIStorageCapacity and
// CustomResourceDefinition. The server may print more for the few kinds that are off by default (ClusterTrustBundle,
// LeaseCandidate, PodCertificateRequest, StorageVersion and the like), which this package does not know.
//
// A custom resource has the columns of its definition: see [ForCRD]. A definition comes from a cluster, so there are
// limits for the number of columns, the length of a path, and the work that a path can cause.
//
// Versions before v1 of some kinds are printed like v1. They are off by default and not compared with a server.
//
// # Limitations
//
// A HorizontalPodAutoscaler of v1 has all metrics except that of the CPU in an annotation, without their order. The CPU
// is printed first.
package table
