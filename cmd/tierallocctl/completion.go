package main

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

const completionHelp = `Print the script by which a shell completes the arguments of
tierallocctl. "build.sh install" and the packages install the scripts where the shells look
for them. Bash loads its script by itself where the package bash-completion is installed;
without it, add the example to ~/.bashrc.`

// bashWords is the line of the bash script that takes the command line apart, by a function of the
// package bash-completion. ownWords does the same without the package, except that blanks in quotes
// part words.
const (
	bashWords = `    _get_comp_words_by_ref "$@" cur prev words cword
`
	ownWords = `    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -r -a words <<<"$line"
    [[ $line != *[[:blank:]] ]] || words+=("")
    cword=$((${#words[@]} - 1)) cur=${words[-1]} prev=${words[cword > 0 ? cword - 1 : 0]}
`
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print the completion script of a shell",
		Long:      completionHelp,
		Example:   "  source <(tierallocctl completion bash)",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				var script strings.Builder
				if err := cmd.Root().GenBashCompletionV2(&script, true); err != nil {
					return err
				}
				text := strings.Replace(script.String(), bashWords, ownWords, 1)
				_, err := io.WriteString(out, text)
				return err
			case "zsh":
				return cmd.Root().GenZshCompletion(out)
			}
			return cmd.Root().GenFishCompletion(out, true)
		},
	}
}

// completeValues makes the shell complete a setting's flag with the words that it accepts.
func completeValues(cmd *cobra.Command, s setting) {
	if docOf(s.name).placeholder == "PATH" {
		return // a file's name
	}
	err := cmd.RegisterFlagCompletionFunc(s.flag(),
		cobra.FixedCompletions(s.words(), cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag has completions already
	}
}

var (
	aside = regexp.MustCompile(` \([^)]*\)`)
	apart = regexp.MustCompile(`, or |, | or `)
	aWord = regexp.MustCompile(`^[a-z0-9_]+[GM]?$`)
)

// words returns the values that a setting accepts, if they are a few words such as "reroute, warn
// or demote".
func (s setting) words() (list []string) {
	for _, word := range apart.Split(aside.ReplaceAllString(s.accepts, ""), -1) {
		if !aWord.MatchString(word) {
			break // the rest is a sentence
		}
		list = append(list, word)
	}
	return list
}

// completeProcesses completes the number of a process that has a live page, or the name of a file.
func completeProcesses(_ *cobra.Command, args []string, _ string) (list []string,
	_ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	pages, _ := allPages() // those that can be read
	for _, p := range pages {
		list = append(list, strconv.Itoa(p.pid)+"\t"+strings.TrimSpace(printable(p.program)))
	}
	return list, cobra.ShellCompDirectiveDefault
}
