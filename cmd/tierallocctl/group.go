package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tieralloc/internal/group"
)

const groupHelp = `Show the groups of processes whose sum the caps hold for (TA_GROUP).

Without NAME: the groups of this user, or for root those of all users. With NAME, which may be
the path of a group's file: its members, and what each has of each tier and device. "used" is
what the member has reserved, "granted" what it may reserve without asking the group, "kept" its
TA_GROUP_MIN. What is granted and not used goes to other members when they run short: "taken" is
what the member got so. "waits" counts requests below what is kept that waited for others. A
member that has ended keeps its bytes until another one needs them.

--remove removes the file of a group without members. The next process that names the group
makes a new one, with its own caps.`

func groupCommand() *cobra.Command {
	var asJSON, remove bool
	cmd := &cobra.Command{
		Use:   "group [NAME]",
		Short: "Show the groups of processes that have caps together, and their members",
		Long:  groupHelp,
		Example: "  tierallocctl run --group train --normal-hard 8G -- python3 train.py &\n" +
			"  tierallocctl group train",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				if remove {
					return usage("group: --remove needs a NAME")
				}
				groups, bad := allGroups()
				if bad != nil {
					complain(cmd.ErrOrStderr(), bad)
				}
				if asJSON {
					return writeJSON(out, groups)
				}
				return showGroups(out, groups)
			}
			path := groupPath(args[0])
			if remove {
				return removeGroup(path)
			}
			g, err := readGroup(path)
			if errors.Is(err, os.ErrNotExist) {
				err = fmt.Errorf("there is no group %s: no process has joined it (%s)", args[0],
					path)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(out, g)
			}
			return showGroup(out, g)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as JSON")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the file of a group without members")
	return cmd
}

// showGroups writes a table of groups.
func showGroups(w io.Writer, groups []*processGroup) error {
	if len(groups) == 0 {
		_, err := fmt.Fprintln(w,
			"No group: none of this user's processes was started with TA_GROUP.")
		return err
	}
	t := newTable("group", "user", ">members", "account", ">used", ">soft cap", ">hard cap")
	for _, g := range groups {
		row := table.Row{printable(g.Name), userName(g.Owner), g.living()}
		for _, a := range g.Accounts {
			t.AppendRow(append(row, a.Name, size(a.Used), limit(a.SoftCap), limit(a.HardCap)))
			row = table.Row{"", "", ""}
		}
		if len(g.Accounts) == 0 {
			t.AppendRow(append(row, none, none, none, none))
		}
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// showGroup writes a table of a group's members.
func showGroup(w io.Writer, g *processGroup) error {
	head := table.Row{">pid", "program", "state", ">taken", ">waits", ">refused"}
	total, hard, soft := table.Row{"", "all", "", "", "", ""}, table.Row{"", "hard cap", "", "", "",
		""}, table.Row{"", "soft cap", "", "", "", ""}
	for _, a := range g.Accounts {
		head = append(head, ">"+a.Name+" used", ">granted", ">kept")
		total = append(total, size(a.Used), size(a.Granted), "")
		hard = append(hard, limit(a.HardCap), "", "")
		soft = append(soft, limit(a.SoftCap), "", "")
	}
	t := newTable(head...)
	for _, m := range g.Members {
		state := "runs"
		if m.Ended {
			state = "has ended"
		}
		row := table.Row{m.Pid, printable(m.Program), state, limit(m.Taken), count(m.Waits),
			count(m.Refused)}
		for _, s := range m.Shares {
			row = append(row, size(s.Used), size(s.Granted), limit(s.Kept))
		}
		t.AppendRow(row)
	}
	t.AppendSeparator()
	t.AppendRows([]table.Row{total, hard, soft})
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// removeGroup removes the file of a group that has no members. It holds the lock that joining
// processes take, so that none joins a file that is about to go.
func removeGroup(path string) error {
	if _, err := readGroup(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	l := unix.Flock_t{Type: unix.F_WRLCK, Len: group.Members + 1}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l) != nil {
		return fmt.Errorf("the group %s has members: end them first", path)
	}
	return os.Remove(path)
}
