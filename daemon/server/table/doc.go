// Package table makes what an API server answers to a client that accepts
// "application/json;as=Table;v=v1;g=meta.k8s.io": the columns of a kind, and the cells
// of each of its objects, from the object's JSON alone.
//
//	p := table.For(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
//	columns := p.Columns()
//	row, err := p.Row(raw, time.Now())
//
// What it promises:
//
//   - The columns and cells are those of a Kubernetes 1.36 server, wide columns (priority 1),
//     descriptions and row conditions included. A test asks a real server for the Table
//     of every kind below, over objects in many states, and compares.
//   - Ages are counted to the moment that the caller names. Nothing reads the clock.
//   - No JSON makes Row panic. An object that is not what its kind says is an error, which
//     names the kind and quotes nothing of the object: it may be a secret.
//   - A Printer may be used by any number of goroutines.
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
// Every other kind has Name and Created At. That is what the server itself prints for
// Role, ClusterRole, LimitRange, CSIStorageCapacity and CustomResourceDefinition. It may print
// more for the few kinds that are off by default (ClusterTrustBundle, LeaseCandidate,
// PodCertificateRequest, StorageVersion and the like), which this package does not know.
//
// A custom resource prints as its definition says: see [ForCRD]. What a definition may ask for is
// bounded, because it comes from a cluster: the columns, the length of a path, and how much work a path can
// make.
//
// Versions before v1 of some kinds print as v1 does. They are off by default, so no server was asked.
//
// # What an object cannot tell
//
// A HorizontalPodAutoscaler read as v1 carries all metrics but that for the CPU in an
// annotation, and no longer says which came first. It prints the CPU first.
package table
