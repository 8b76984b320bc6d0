# What every script in the guest begins with.
set -u

# report NAME VALUE...: one result for the host.
report() { echo "$*" >&3; }

# hear: waits for the next line that the host tells, and leaves it in $heard. In a shell of its own: one whose background process ends
# while it reads loses what it has read of the line.
hear() { heard=$(read -r line <&3 && echo "$line"); }

# reporting NAME COMMAND...: runs the command and reports its exit status, which is left in $status, and the first line it said.
reporting() {
  name=$1
  shift
  "$@" >/tmp/output 2>/tmp/errors
  status=$?
  report "$name" "$status" "$(cat /tmp/output /tmp/errors | head -n 1)"
  cat /tmp/errors
}

# meet HOLDFAST LOCK PHONE [ENROLL OPTION...]: a device, a service and a prover that is enrolled at the device.
meet() {
  holdfast=$1 lock=$2 phone=$3
  shift 3
  "$holdfast" device init --dir "$lock" && "$holdfast" service init --dir "$phone/service" &&
    "$holdfast" device show --dir "$lock" --json >"$phone/lock.json" &&
    "$holdfast" service show --dir "$phone/service" --json >"$phone/service.json" &&
    "$holdfast" device trust --dir "$lock" "$phone/service.json" &&
    "$holdfast" service device add --dir "$phone/service" "$phone/lock.json" &&
    "$holdfast" enroll --device "$phone/lock.json" --service "$phone/service" --state "$phone/state" "$@"
}

# serve HOLDFAST LOCK: begins to serve, and waits until the device listens; $server is its process.
serve() {
  "$1" device serve --dir "$2" --listen unix:/tmp/lock.sock &
  server=$!
  until [ -S /tmp/lock.sock ]; do kill -0 "$server" 2>/dev/null && sleep 0.1 || return 1; done
}

# stop: ends the device that serves, and reports how it went.
stop() {
  kill "$server"
  wait "$server"
  report stopped "$?"
  rm -f /tmp/lock.sock
}

# prove NAME HOLDFAST STATE COMMAND: one round; its exit status and what the device said.
prove() {
  reporting "$1" "$2" prove --connect unix:/tmp/lock.sock --state "$3" --command "$4" --json
}

# audit HOLDFAST LOCK: whether the chain is whole, and how many rounds it says were accepted.
audit() {
  reporting audit "$1" device audit --dir "$2" --verify --json
  report accepted "$("$1" device audit --dir "$2" | grep -c 'status=accepted')"
}
