// Mutants checks that the simulator finds bugs. It applies those of informer/testdata/mutants to the engine and the
// daemon, one at a time, and runs the simulator on each until a promise is broken:
//
//	go run ./dev/mutants              every bug, up to 1,000 seeds each
//	go run ./dev/mutants -only queue  those whose name matches
//
// A bug is a patch whose first line describes it. A second line such as
//
//	Judge: ./daemon/fleet TestSimulationOfRestarts
//
// names the test that has to catch it instead of the simulator, TestSimulation of ./informer. A bug is applied to copies
// of the files, which the go command then uses instead of ours (-overlay), so that nothing in the tree changes. A bug
// that is not caught, a patch that does not apply and one that does not compile are all failures.
package main
