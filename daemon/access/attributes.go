package access

// Attributes describe a request, as the Kubernetes API server sees it.
type Attributes struct {
	// Verb is the verb of the request: get, list, watch, create, …, or the HTTP method in lower case for a request that
	// is not for a resource.
	Verb string
	// ResourceRequest selects which of the other fields count: those for a resource, or Path.
	ResourceRequest bool
	// APIGroup, APIVersion, Resource and Subresource are what is requested. RBAC ignores the version.
	APIGroup, APIVersion, Resource, Subresource string
	// Namespace is empty for a request at cluster scope. A request for one Namespace object is a request in that
	// namespace.
	Namespace string
	// Name is empty for a request that is not for one object.
	Name string
	// Path is the URL path of a request that is not for a resource.
	Path string
}
