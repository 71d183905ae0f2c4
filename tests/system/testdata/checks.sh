#!/bin/bash
# What a system is for, one part after the other. All that is printed must be the same without the library; which daemons
# have it mapped goes to a file beside.
# shellcheck disable=SC2016,SC2029 # words of other shells
set -u
cd /root || exit
ip link set lo up

part() { echo "== $1"; }
# bounded COMMAND...: tries until the command succeeds.
bounded() {
	local i
	for i in {1..200}; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.5
	done
	echo "in vain: $*"
}
# mapped NAME PID: whether a process has the library.
mapped() { if grep -q libtieralloc "/proc/$2/maps"; then echo "$1 yes"; else echo "$1 no"; fi >>/tests/mapped; }

part users
useradd -m -s /bin/bash alice && echo 'alice:secret word' | chpasswd && id alice
useradd -m bob && usermod -aG sudo,bob bob && groups bob && userdel -r bob && getent passwd bob
su alice -c 'id -un; echo "$HOME"; cd && umask && echo text >file && cat file'
su - alice -c 'echo "$0 $PWD"; exit 7'; echo $?
su -s /bin/sh nobody -c 'id -un; cat ~alice/.bashrc >/dev/null'; echo $?

part sudo
echo 'alice ALL=(root) NOPASSWD: /usr/bin/id, /usr/bin/env' >/etc/sudoers.d/alice && chmod 440 /etc/sudoers.d/alice && visudo -c -q; echo $?
su alice -c 'sudo -n id -u; sudo -n env | grep ^SUDO_USER; sudo -n cat /etc/shadow; sudo -l | tail -n 1' 2>&1
echo 'secret word' | su alice -c 'sudo -S -p "" -v' 2>&1
sudo -u alice -i pwd

part cron
cron -f & cron=$!
echo '* * * * * id -un >cron.out 2>&1' | su alice -c 'crontab -' && su alice -c 'crontab -l'
mapped cron $cron

part dbus
mkdir -p /run/dbus && dbus-daemon --system --fork --print-pid=1 >/tests/dbus.pid && mapped dbus "$(cat /tests/dbus.pid)"
call() { dbus-send --system --print-reply=literal --dest=org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus."$1" "${@:2}"; }
call ListActivatableNames | tr -s ' ' '\n' | sort
export -f call
su alice -c 'for i in $(seq 1 30); do call NameHasOwner string:org.freedesktop.DBus; done | sort | uniq -c'
dbus-run-session -- dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus / org.freedesktop.DBus.Peer.Ping 2>/dev/null; echo $?

part sshd
mkdir -p /run/sshd && sshd -t; echo $?
/usr/sbin/sshd -o ListenAddress=127.0.0.1 -o PidFile=/run/sshd.pid && bounded test -s /run/sshd.pid && mapped sshd "$(cat /run/sshd.pid)"
install -d -m 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && install -d -o alice -m 700 ~alice/.ssh && install -o alice -m 600 .ssh/id_ed25519.pub ~alice/.ssh/authorized_keys
printf 'Host *\nStrictHostKeyChecking accept-new\nLogLevel ERROR\n' >.ssh/config
seq 1 400000 >big
ssh alice@127.0.0.1 'id -un; tty; wc -c; exit 3' <big; echo $?
ssh -tt alice@127.0.0.1 'tty | cut -c1-9' </dev/null
ssh -o BatchMode=yes nobody@127.0.0.1 true 2>/dev/null; echo $?
scp -q big alice@127.0.0.1:copy && scp -q alice@127.0.0.1:copy back && scp -q -O big alice@127.0.0.1:old && cmp big back && md5sum ~alice/copy ~alice/old
printf 'ls\nput big third\nrm old\nls -1\n' | sftp -q -b - alice@127.0.0.1
rsync -a -e ssh /usr/share/doc/bash alice@127.0.0.1:doc && diff -r /usr/share/doc/bash ~alice/doc/bash && echo same
for i in 1 2 3 4 5 6; do ssh alice@127.0.0.1 "seq $i 20000 | md5sum" >answer$i & jobs[i]=$!; done
wait "${jobs[@]}"
cat answer?

part git
git config --global user.name Me && git config --global user.email me@here && git config --global init.defaultBranch main && git config --global gc.auto 0
export GIT_AUTHOR_DATE='2020-01-02T03:04:05Z' GIT_COMMITTER_DATE='2020-01-02T03:04:05Z'
git init -q tree && cp -r /usr/include/linux tree/ && (cd tree && git add . && git commit -q -m 'first' && sed -i 's/int/long/' linux/a*.h && git commit -q -am 'second' && git log --format='%H %s' && git gc -q && git fsck --strict 2>&1 | tail -n 1)
git clone -q --bare tree ~alice/tree.git && chown -R alice: ~alice/tree.git && git clone -q ssh://alice@127.0.0.1/home/alice/tree.git again && git -C again log --oneline --stat | tail -n 3
(cd again && echo 3 >third && git add third && git commit -q -m third && git push -q origin main 2>&1; su alice -c 'git -C ~/tree.git log --format=%s')

part compilers
cat >hello.cc <<'TEXT'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <thread>
#include <vector>
int main() {
	std::map<std::string, int> m;
	std::vector<std::thread> v;
	std::vector<long> sums(8);
	for (int i = 0; i < 50000; i++) m[std::to_string(i * 7919 % 10007)]++;
	for (int t = 0; t < 8; t++) v.emplace_back([&sums, t] { for (int i = 0; i < 20000; i++) sums[t] += std::string(i % 200, 'x').size(); });
	for (auto &t : v) t.join();
	std::cout << m.size() << ' ' << sums[7] << ' ' << std::regex_replace(std::string("a1b22"), std::regex("[0-9]+"), "-") << '\n';
	throw 5;
}
TEXT
printf 'hello: hello.o\n\tg++ -o $@ $^ -pthread\nhello.o: hello.cc\n\tg++ -O2 -g -c $^\n' >Makefile
make -j2
{ ./hello 2>&1; echo $?; } 2>/dev/null # bash names the process that was aborted

part languages
node -e 'const m = new Map(); for (let i = 0; i < 200000; i++) m.set(i * 7919 % 10007, "x".repeat(i % 50)); console.log(m.size, require("zlib").gzipSync(Buffer.alloc(1e6)).length); require("child_process").execFileSync("id", ["-u"], {stdio: "inherit"})'
cat >Hello.java <<'TEXT'
import java.util.stream.*;
public class Hello {
	public static void main(String[] a) throws Exception {
		System.out.println(IntStream.range(0, 300000).parallel().mapToObj(i -> "s" + i * 7919 % 10007).distinct().count());
		new ProcessBuilder("id", "-u").inheritIO().start().waitFor();
	}
}
TEXT
javac Hello.java && java -Xmx200m Hello
php -r 'echo count(get_loaded_extensions()) > 25 ? "many" : "few", " ", mb_strtoupper("straße"), " ", count(range(1, 100000)), "\n";'; echo $?
python3 -c 'import sqlite3, subprocess, threading; c = sqlite3.connect(":memory:"); print(c.execute("select sqlite_version() > 3").fetchone(), subprocess.check_output(["id", "-un"]), sum(len(str(i)) for i in range(300000)))'
perl -e 'my %h; $h{$_ * 7919 % 10007} .= "x" x ($_ % 9) for 1 .. 100000; print scalar(keys %h), " ", `id -un`'

part mariadb
service mariadb start >/dev/null 2>&1; echo $? # it prints a dot a second
mapped mariadbd "$(pidof mariadbd)"
mariadb -t <<'TEXT'
CREATE DATABASE d; USE d;
CREATE TABLE t(id INT PRIMARY KEY, name VARCHAR(60), KEY(name));
INSERT INTO t SELECT seq, CONCAT('name-', seq * 7919 % 20011) FROM seq_1_to_20000;
SELECT COUNT(*), MD5(GROUP_CONCAT(name ORDER BY id)) FROM t;
CREATE USER web@localhost IDENTIFIED BY 'word'; GRANT SELECT ON d.* TO web@localhost;
TEXT
mariadb-dump --skip-dump-date d | grep -v '^-- ' | md5sum
mariadb-check d

part apache
cat >/var/www/html/page.php <<'TEXT'
<?php $c = new mysqli('localhost', 'web', 'word', 'd'); echo $c->query('SELECT SUM(id) FROM t')->fetch_row()[0], ' ', PHP_SAPI, ' ', count(get_loaded_extensions()) > 25 ? 'many' : 'few', "\n";
TEXT
echo 'ServerName localhost' >/etc/apache2/conf-enabled/name.conf
apachectl -t 2>&1 && apachectl start && bounded test -s /run/apache2/apache2.pid && mapped apache2 "$(cat /run/apache2/apache2.pid)"
bounded curl -sf http://127.0.0.1/
for i in {1..40}; do curl -s http://127.0.0.1/page.php; done | sort | uniq -c
apachectl graceful && bounded curl -sf http://127.0.0.1/page.php && curl -s http://127.0.0.1/ | md5sum
apachectl stop
service mariadb stop >/dev/null 2>&1; echo $?
grep -hE 'exit signal|AH00052' /var/log/apache2/error.log

part tools
man -P cat bash 2>/dev/null | wc -l
tar -C /usr -cf - share/doc | xz -1 -T2 | xz -dc | tar -C /usr -df - && echo packed
find / -xdev -path /var -prune -o -type f -perm -4000 -print | sort
ldconfig -p | grep -c libc.so.6; vi -es -c 'normal ihello' -c 'w out' -c q; cat out

part "cron, later"
bounded test -s ~alice/cron.out
cat ~alice/cron.out
kill "$cron" "$(cat /run/sshd.pid)" "$(cat /tests/dbus.pid)"; wait "$cron"; echo $?
