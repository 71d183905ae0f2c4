#!/bin/bash
# A repository with fixed names and dates, so that every object has one hash.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org

commit() { # second message
	export GIT_AUTHOR_DATE="@$((1000000000 + $1)) +0000" GIT_COMMITTER_DATE="@$((1000000000 + $1)) +0000"
	git add -A
	git commit -q -m "$2"
}

git init -q -b main one
cd one
mkdir -p a/b c
for i in $(seq 1 60); do
	seq "$i" 7 $((i * 200)) >"a/f$((i % 9))"
	seq "$i" 3 $((i * 90)) >"a/b/g$((i % 4))"
	echo "line $i" >>c/log
	commit "$i" "commit $i"
done
git checkout -q -b side HEAD~20
for i in $(seq 61 75); do
	echo "side $i" >>c/side
	commit "$i" "side $i"
done
git checkout -q main
export GIT_AUTHOR_DATE="@1000000100 +0000" GIT_COMMITTER_DATE="@1000000100 +0000"
git merge -q --no-edit side
git tag -a -m "a tag" v1

git log --graph --oneline | md5sum
git log -p --stat -M | md5sum
git log -3 --format=fuller
git blame c/log | tail -3
git diff --stat HEAD~30 HEAD
git grep -n 'side 7[0-3]'
git -c pack.threads=2 gc -q --aggressive --prune=now
git fsck --strict --no-progress
git rev-parse HEAD v1 HEAD:a/b
git archive --format=tar HEAD | md5sum
cd ..

git clone -q --no-local one two
cd two
git fsck --no-progress
git ls-files -s | md5sum
git rebase -q --onto HEAD~40 HEAD~30 HEAD~25 >/dev/null 2>&1 || echo "rebase stopped with $?"
git status --short | head -5
git rebase --abort
git rev-parse HEAD
git -c pack.threads=1 pack-objects --all --stdout </dev/null 2>/dev/null | git index-pack --stdin --threads=2 | wc -c
git show nothing || echo "show ended with $?"
