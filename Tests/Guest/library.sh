# Functions for every script in the guest.
set -u

# report NAME VALUE...: sends a result to the host.
report() { echo "$*" >&3; }

# hear: waits for the next line from the host, and leaves it in $heard. It reads in a separate shell, because a shell whose background
# process ends during the read loses the part of the line that it has read.
hear() { heard=$(read -r line <&3 && echo "$line"); }

# reporting NAME COMMAND...: runs the command and reports its exit status, which it leaves in $status, and the first line of its output.
reporting() {
  name=$1
  shift
  "$@" >/tmp/output 2>/tmp/errors
  status=$?
  report "$name" "$status" "$(cat /tmp/output /tmp/errors | head -n 1)"
  cat /tmp/errors
}

# meet HOLDFAST LOCK PHONE [ENROLL OPTION...]: takes the device and the service that the host has made, and enrols a prover for the device.
meet() {
  holdfast=$1 lock=$2 phone=$3
  shift 3
  cp -a /met/lock "$lock" && cp -a /met/service /met/lock.json "$phone" &&
    "$holdfast" enroll --device "$phone/lock.json" --service "$phone/service" --state "$phone/state" "$@"
}

# serve HOLDFAST LOCK: starts the device and waits until it listens; $server is its process.
serve() {
  "$1" device serve --dir "$2" --listen unix:/tmp/lock.sock &
  server=$!
  until [ -S /tmp/lock.sock ]; do kill -0 "$server" 2>/dev/null && sleep 0.1 || return 1; done
}

# stop: ends the device and reports its exit status.
stop() {
  kill "$server"
  wait "$server"
  report stopped "$?"
  rm -f /tmp/lock.sock
}

# prove NAME HOLDFAST STATE COMMAND: runs one round, and reports its exit status and the device's answer.
prove() {
  reporting "$1" "$2" prove --connect unix:/tmp/lock.sock --state "$3" --command "$4" --timeout 60 --json
}

# audit HOLDFAST LOCK: reports whether the chain is complete, and the number of accepted rounds in it.
audit() {
  reporting audit "$1" device audit --dir "$2" --verify --json
  report accepted "$("$1" device audit --dir "$2" | grep -c 'status=accepted')"
}
