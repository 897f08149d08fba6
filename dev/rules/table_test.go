package rules

const (
	anyKubernetes = "k8s.io/..."
	anything      = "anything"
	apis          = "k8s.io/api/..."
	apimachinery  = "k8s.io/apimachinery/..."
	prometheus    = "github.com/prometheus/client_golang/..."
)

// A rule says what a package is for and what it may import besides the standard library. Names without a dot in their
// first part are packages of this module.
type rule struct {
	pkg     string // a path below the module; "x/..." covers x and all below it
	job     string
	may     []string
	because string
}

// rules are the packages of the main module. Imports point up: a package may import only what stands above it. The
// first rule that covers a package counts, and a package that no rule covers fails the test. ARCHITECTURE.md shows
// this table.
var rules = []rule{
	{"object", "the vocabulary: Key, Version, Item, Delta, Event", nil,
		"every package uses it, so whatever it imported would be linked everywhere"},
	{"internal/share", "finds equal parts of objects of any type by hash", nil,
		"store and source/kube both use it, on objects of any type"},
	{"internal/jsondiff", "finds the differences between two states of an object", nil,
		"the server and the command line compare states in the same way"},
	{"internal/jsonscan", "finds the parts of valid JSON without decoding it", nil,
		"finding the parts of JSON needs nothing but its bytes"},
	{"source", "the contract of whatever objects come from", []string{"object"},
		"a source must be implementable without a Kubernetes client"},
	{"source/kube", "a source over an API server: typed, dynamic, metadata, raw",
		[]string{"object", "source", "internal/share", "internal/jsonscan", apis, apimachinery, "k8s.io/client-go/rest/...",
			"k8s.io/client-go/kubernetes/scheme",
			"k8s.io/client-go/discovery", "google.golang.org/protobuf/..."},
		"the only package that speaks the wire format; it uses client-go's transport and none of its caches"},
	{"reflector", "the list and watch state machine, backoff, health", []string{"object", "source"},
		"tests step it with sources that are no servers"},
	{"queue", "DeltaFIFO, for informers built by hand", []string{"object"},
		"it runs on any struct, without Kubernetes"},
	{"store/internal/pack", "encoded objects, each as its difference to one like it",
		[]string{"github.com/klauspost/compress/..."},
		"bytes in, bytes out"},
	{"store", "objects and indexes, snapshots, a bounded log of changes; layouts live, shared, packed",
		[]string{"object", "internal/share", "store/internal/pack"},
		"compat, query and the daemon use it, with objects of any form"},
	{"fanout", "delivers one stream of events to many handlers, each isolated", []string{"object"},
		"delivery must not know where events come from, so that it can be tested alone"},
	{"informer", "one pipeline from a source to handlers, and its lifecycle",
		[]string{"object", "source", "reflector", "store", "fanout"},
		"it runs over any source; knowing source/kube would tie it to a server"},
	{"factory", "one informer per resource and scope, shared",
		[]string{"object", "source", "source/kube", "reflector", "store", "informer", anyKubernetes},
		"binds the resources of a server to shared informers"},
	{"metrics", "Prometheus metrics of informers", []string{"informer", prometheus},
		"the one package of the library that knows Prometheus, so that a program without it links none of it"},
	{"compat/...", "client-go's names on this engine",
		[]string{"object", "source", "reflector", "queue", "store", "informer", "compat/...", anyKubernetes},
		"what client-go's users import; everything in it is a thin layer over the packages above"},
	{"informertest", "an API server in memory with faults, for tests; a simulator",
		[]string{"object", "source", apis, apimachinery, "k8s.io/client-go/rest/...", "k8s.io/client-go/kubernetes/scheme",
			"sigs.k8s.io/json"},
		"it serves any client, ours or not"},
	{"informertest/kit", "the conformance kit: one test for each promise, for any informer",
		[]string{"object", "informertest", apis, apimachinery, "k8s.io/client-go/rest/..."},
		"the informer under test comes in through an adapter, so that the kit can test any implementation"},
	{"daemon/query", "selectors, CEL, order and pages over snapshots, and the visibility of objects",
		[]string{"object", "store", "internal/jsonscan", apimachinery, "github.com/google/cel-go/..."},
		"queries run on snapshots alone, so they can never reach a cluster"},
	{"daemon/disk", "keeps states and history of resources in a folder, on Pebble",
		[]string{"object", "store", "github.com/cockroachdb/pebble/v2/..."},
		"states in, states out; it knows neither clusters nor requests, and no other package knows Pebble"},
	{"daemon/fleet", "many clusters: join, leave, discover, limits, health",
		[]string{"object", "source", "source/kube", "store", "informer", "internal/jsonscan", "daemon/disk", anyKubernetes},
		"many clusters, each with informers of its own"},
	{"daemon/members", "finds members in the home cluster: Secrets, ClusterProfile objects",
		[]string{"object", "source/kube", "informer", "daemon/fleet", anyKubernetes, "sigs.k8s.io/yaml"},
		"what joins is decided here, how it is mirrored in daemon/fleet"},
	{"daemon/ratelimit", "requests per second of each client, and the address of a request", nil,
		"login, identity and server bound what an address can do in the same way"},
	{"daemon/identity", "the user that sends a request: tokens, certificates, OIDC, a front proxy's headers",
		[]string{"daemon/ratelimit", apis, apimachinery, "k8s.io/apiserver/...", "k8s.io/utils/lru",
			"golang.org/x/time/rate"},
		"it authenticates with the code of kube-apiserver and knows neither clusters nor what a user may see"},
	{"daemon/login", "logs users of the page in at an OIDC issuer, and keeps their sessions",
		[]string{"daemon/ratelimit", "daemon/identity", "k8s.io/apiserver/pkg/authentication/user",
			"golang.org/x/oauth2"},
		"a session stands for a token, which daemon/identity authenticates like any other"},
	{"daemon/access", "what a user may do in each cluster and with the daemon: RBAC, evaluated locally",
		[]string{"object", "daemon/query", "daemon/fleet", anyKubernetes, "sigs.k8s.io/yaml"},
		"rights come from mirrored roles and bindings; a server asks it, and it knows no request"},
	{"daemon/audit", "writes audit events to a file, without blocking requests",
		[]string{"k8s.io/apiserver/pkg/apis/audit/v1"},
		"events in, lines out; it knows no requests"},
	{"daemon/server/table", "columns and cells of every kind, as the API server prints them", []string{anyKubernetes},
		"a table is made of one object, whatever it came from"},
	{"daemon/server", "the Kubernetes API over a fleet, read-only, with authentication",
		[]string{"object", "store", "daemon/query", "daemon/fleet", "daemon/ratelimit", "daemon/access", "daemon/server/table",
			"internal/jsondiff", "internal/jsonscan", anyKubernetes,
			"github.com/klauspost/compress/gzip", "github.com/munnerz/goautoneg", "golang.org/x/net/websocket", prometheus,
			"github.com/google/gnostic-models/openapiv2", "google.golang.org/protobuf/proto"},
		"answers come from the fleet; importing a source here would be the way to send a read to a cluster"},
	{"daemon/web", "the page, embedded", nil, "files and nothing else"},
	{"daemon/cli", "the commands besides serve: reads go through a server, writes straight to a cluster",
		[]string{"internal/jsondiff", "daemon/fleet", "daemon/server", anyKubernetes, "github.com/spf13/...",
			"sigs.k8s.io/yaml"},
		"it reads through a server, never past it"},
	{"cmd/...", "flags and wiring", []string{anything}, "wiring knows all parts"},
	// and see forbids
	{"examples/...", "programs to read and run", []string{anything}, "an example may show anything that is public"},
	{"dev/testpods", "realistic pods for tests and measurements", []string{apis, apimachinery},
		"tests and measurements of every package use it, so it may import none of them"},
	{"dev/testcluster", "a real cluster for Go tests, one per test binary", []string{anyKubernetes},
		"tests of every package use it, so it may import none of them"},
	{"dev/sharedinformer", "adapts client-go's and compat's shared informers to the conformance kit",
		[]string{"object", "compat/...", "informertest", "informertest/kit", apis},
		"tests of compat and of the kit use it; compat's names are aliases of client-go's"},
	{"dev/overload", "what one slow handler costs the others; a test in fake time, a measurement in real time",
		[]string{"object", "source", "fanout", "informer"}, "an overload needs no server, so that fake time can drive it"},
	{"dev/soak", "two informers on a real cluster for a long time: nothing grows, nothing is lost",
		[]string{"object", "source/kube", "reflector", "store", "informer", apis, apimachinery, "k8s.io/client-go/..."},
		"a program as a user's would be, on a real cluster"},
	{"dev/...", "what only people working on Mirador need: chaos, conformance, fuzz, mutants, rules and build tools", nil,
		"build tools run before anything is downloaded"},
}
