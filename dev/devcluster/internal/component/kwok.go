package component

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/client"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// runKWOK runs KWOK's controllers with KWOK's own fast stages. Pods with part.HandsOffLabel are left to the program
// that created them, except for their deletion, which reap handles.
func runKWOK(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := kwok(ctx, args); err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		return 1
	}
	return 0
}

func kwok(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the cluster whose nodes are simulated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// KWOK logs a line per pod and stage at its info level.
	ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelWarn))

	stages, err := stages()
	if err != nil {
		return err
	}
	clients, err := client.NewClientset("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", *kubeconfig, err)
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return err
	}
	dynamicClient, err := clients.ToDynamicClient()
	if err != nil {
		return err
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return err
	}
	restClient, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return err
	}
	typedConfig := rest.CopyConfig(restConfig)
	typedConfig.ContentType = "application/vnd.kubernetes.protobuf"
	typedConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(typedConfig)
	if err != nil {
		return err
	}

	ctr, err := controllers.NewController(controllers.Config{
		Clock:                      clock.RealClock{},
		DynamicClient:              dynamicClient,
		RESTClient:                 restClient,
		RESTMapper:                 mapper,
		ImpersonatingDynamicClient: clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:   clients.ToImpersonatingTypedClient(),
		TypedClient:                typed,
		LocalStages:                stages,

		ManageNodesWithAnnotationSelector: part.NodeAnnotation + "=" + part.NodeAnnotationValue,
		// This is not a condition in the stages, because evaluating one for each event of each pod is expensive.
		DisregardStatusWithLabelSelector: part.HandsOffLabel,
		CIDR:                             "10.0.0.0/8",
		NodeIP:                           "192.168.0.1",

		// Each worker has one request in flight; KWOK's default of 4 leaves the API server idle.
		PodPlayStageParallelism:   32,
		NodePlayStageParallelism:  8,
		NodeLeaseParallelism:      8,
		PodsOnNodeSyncParallelism: 4,

		NodeLeaseDurationSeconds:      40,
		EnablePodsOnNodeSyncListPager: true,
		// With a fixed identity a restarted KWOK takes over its own leases at once instead of waiting for them to expire.
		ID: "devcluster",
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := ctr.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return reap(ctx, typedConfig)
}

// stages returns KWOK's own fast stages.
func stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	all := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, yaml := range []string{
		nodefast.DefaultNodeInit,
		heartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](yaml)
		if err != nil {
			return nil, fmt.Errorf("read a built-in stage: %w", err)
		}
		ref := stage.Spec.ResourceRef
		all[ref] = append(all[ref], stage)
	}
	return all, nil
}
