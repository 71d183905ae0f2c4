#!/bin/bash
# One pass over what bash does with memory: here-documents, arrays, pipes,
# subshells, traps, jobs, coprocesses and long strings.
set -u

cat <<TEXT | tr '[:lower:]' '[:upper:]'
a here-document of $((6 * 7)) words
TEXT
cat <<<"a here-string"

false | true | (exit 7)
echo "PIPESTATUS: ${PIPESTATUS[*]}"
yes | head -1
echo "PIPESTATUS: ${PIPESTATUS[*]}"

declare -A count
for word in one two three two three three; do
	count[$word]=$((${count[$word]:-0} + 1))
done
for word in one two three; do echo "$word ${count[$word]}"; done

list=()
for i in $(seq 1 5000); do list+=("item$i"); done
echo "${#list[@]} ${list[4999]} ${list[*]:10:3}"

text=$(head -c 100000 /dev/zero | tr '\0' x)
short=${text:0:5000} # bash takes quadratic time to replace in UTF-8
echo "${#text} $(md5sum <<<"${short//x/yz}")"

depth() {
	if (($1 > 0)); then (depth $(($1 - 1))); else echo "the innermost subshell"; fi
}
depth 20

sum=0
while read -r n; do sum=$((sum + n)); done < <(seq 1 2000)
echo "sum $sum"

coproc rev
# When rev ends bash closes its own and unsets the variables.
rev_pid=$COPROC_PID to=${COPROC[1]}
exec {from}<&"${COPROC[0]}"
echo "desserts" >&"$to"
exec {to}>&-
cat <&"$from"
exec {from}<&-
wait "$rev_pid"
echo "coprocess ended with $?"

for i in 1 2 3 4; do (exit "$i") & pids[i]=$!; done
for i in 1 2 3 4; do
	wait "${pids[i]}"
	echo "job $i ended with $?"
done

trap 'echo "got USR1"' USR1
kill -USR1 $BASHPID
trap 'echo "leaving"' EXIT
(trap 'echo "a subshell leaves"; exit 3' TERM; kill -TERM "$BASHPID"; sleep 5)
echo "status $?"

date="2001-02-03"
[[ $date =~ ^([0-9]+)-([0-9]+)-([0-9]+)$ ]] && echo "${BASH_REMATCH[@]}"
printf '%s|%05d|%x|%q\n' text 42 255 'two words'
for i in $(seq 1 200); do /bin/true || echo "true failed"; done
exec bash -c 'echo "after exec: $0 $*"; exit 5' name a b
