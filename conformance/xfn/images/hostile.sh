#!/bin/sh
# Tries what a function must not be able to do: hostile.sh MODE ADDRESS PORT SECRET PID. What is refused is written to standard
# error, and the function fails. What succeeds makes the function answer.
mode=$1 address=$2 port=$3 secret=$4 pid=$5
answer() { echo "$mode: SUCCEEDED $*" >&2; echo 'desired: {}'; exit 0; }
refused() { echo "$mode: refused" >&2; exit 3; }
case $mode in
network) nc -w 2 "$address" "$port" </dev/null && answer; refused ;;
files) cat "$secret" && answer; cat "/proc/1/root$secret" && answer; echo x > /written && answer; refused ;;
processes) kill -0 "$pid" && answer; [ "$(ls -d /proc/[0-9]* | wc -l)" -gt 8 ] && answer; refused ;;
proc)
  echo x > /proc/sys/kernel/core_pattern && answer
  echo x > /proc/sysrq-trigger && answer
  [ -n "$(head -c 1 /proc/kcore | tr -d '\0')" ] && answer
  mount -t tmpfs tmpfs /tmp && answer
  unshare -U true && answer
  mknod /tmp/sda b 8 0 && answer
  refused ;;
fork) while :; do sleep 1000 & done ;;
memory) dd if=/dev/zero of=/dev/null bs=1024M count=1 && answer; refused ;;
cpu) while :; do :; done ;;
disk) dd if=/dev/zero of=/tmp/large bs=1M count=1000 && answer; refused ;;
stderr) head -c 100000000 /dev/zero >&2; answer ;;
stdout) yes ;;
stdin) sleep 1000 ;;
closed) exec 1>&-; exit 0 ;;
term) trap '' TERM INT HUP; while :; do sleep 1; done ;;
daemon) (trap '' HUP; while :; do echo leaked; sleep 1; done) & sleep 1000 ;;
esac
