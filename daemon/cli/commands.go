package cli

import "github.com/spf13/cobra"

// Commands returns all commands of this package, to be added to a root command.
func Commands() []*cobra.Command {
	all := []*cobra.Command{
		newGet(), newWatch(), newCount(), newHistory(), newDiff(), newClusters(), newAPIResources(), newStatus(),
		newCreate(), newApply(), newReplace(), newPatch(), newDelete(),
	}
	for _, c := range all {
		finish(c)
	}
	return all
}

// finish sets what all commands have in common on a command and its subcommands.
func finish(c *cobra.Command) {
	c.Long += exitHelp
	if c.Name() == "status" {
		c.Long += exitHelpOfStatus
	} else {
		c.Long += exitHelpOfOthers
	}
	c.SetFlagErrorFunc(WrongFlag)
	c.SilenceErrors, c.SilenceUsage = true, true
	for _, below := range c.Commands() {
		finish(below)
	}
}
