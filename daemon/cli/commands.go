package cli

import "github.com/spf13/cobra"

// Commands are all commands of this package, to be added to a root.
func Commands() []*cobra.Command {
	all := []*cobra.Command{
		newGet(), newWatch(), newCount(), newClusters(), newAPIResources(), newStatus(),
		newCreate(), newApply(), newReplace(), newPatch(), newDelete(),
	}
	for _, c := range all {
		finish(c)
	}
	return all
}

// finish gives a command and those below it what all of them have.
func finish(c *cobra.Command) {
	c.Long += exitHelp
	c.SetFlagErrorFunc(WrongFlag)
	c.SilenceErrors, c.SilenceUsage = true, true
	for _, below := range c.Commands() {
		finish(below)
	}
}
