# Functions for scripts that use Bluetooth.

# within SECONDS COMMAND...: waits until the command succeeds. Each try costs an emulated processor much, so there are few.
within() {
  look_at_clock
  deadline=$((now + $1)) pause=0.05
  shift
  until "$@"; do
    look_at_clock
    if [ "$now" -gt "$deadline" ]; then
      report failed "waiting for $*"
      return 1
    fi
    sleep "$pause"
    pause=0.2
  done
}

# look_at_clock: leaves the seconds since the boot in $now.
look_at_clock() {
  read -r now rest </proc/uptime
  now=${now%.*}
}

# patiently COMMAND...: waits for at most two minutes until the command succeeds: other work may keep the processors busy.
patiently() { within 120 "$@"; }

address() { manage_adapter address "$1"; }

# radio COUNT: emulates a radio with COUNT controllers of this host, and one controller for each connection to its socket. Each can
# have several links at once.
radio() {
  LD_PRELOAD=/usr/bin/piconet.so btvirt -l"$1" -s >/dev/null &
  patiently [ -S /tmp/bt-server-bredrle ]
}

# lend: gives a controller of this radio to the host at the other end of the port.
lend() {
  patiently [ -e /dev/vport0p1 ]
  socat /dev/vport0p1 UNIX-CONNECT:/tmp/bt-server-bredrle &
  report air lent
}

# attach: uses the line to the other host's radio as an adapter, once it is there.
attach() {
  hear
  btattach -B /dev/hvc0 -P h4 >/dev/null &
}

# adapter INDEX: waits until the kernel knows the adapter, makes it ready for BR/EDR and LE, and reports its address. The kernel gives a
# controller two seconds to do a command, and an emulated one may be stopped for longer by other work, so it tries twice.
adapter() {
  ready "$1" || { report unready "$(cat /tmp/unready)" && ready "$1"; } || report failed "hci$1: $(cat /tmp/unready)"
  report address "hci$1 $(address "$1")"
}

ready() { manage_adapter ready "$1" 2>/tmp/unready; }
configured() { btmgmt info | grep -q "^hci$1:"; }
running() { hciconfig "hci$1" | grep -q 'UP RUNNING PSCAN'; }

# alone INDEX: waits until the adapter has no link, two seconds after its last channel.
alone() { manage_adapter alone "$1" || report failed "hci$1 has a link"; }

# agent INDEX: accepts every pairing. The kernel asks for it even if neither end has a display.
agent() { manage_adapter agent "$1" || report failed "hci$1: no agent"; }

# listening NAME COMMAND...: runs one of BlueZ's test programs in the background until it waits for a connection; its output is /tmp/NAME.
listening() {
  name=$1
  shift
  "$@" >"/tmp/$name" 2>&1 &
  patiently grep -q Waiting "/tmp/$name"
}

# exchange NAME COMMAND...: runs the other end for at most a minute, and reports its exit status.
exchange() {
  name=$1
  shift
  timeout 60 "$@" >"/tmp/$name.sent" 2>&1
  report "$name" "$?"
}

# received NAME: reports the number of messages and bytes that the listener has received, once its peer has gone.
received() {
  patiently grep -q Disconnect "/tmp/$1"
  report "$1-received" "$(awk '/Received [0-9]+ bytes/ { messages += 1; bytes += $(NF - 1) } END { print messages + 0, bytes + 0 }' "/tmp/$1")"
}

# daemon: starts bluetoothd, process $bluetoothd, with its message bus, and with the socket for SDP's older tools.
daemon() {
  mkdir -p /run/dbus /var/lib/bluetooth
  cat >/tmp/bus.conf <<'END'
<busconfig>
  <type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy>
</busconfig>
END
  dbus-daemon --config-file=/tmp/bus.conf --nofork --nopidfile &
  patiently [ -S /run/dbus/system_bus_socket ]
  mkdir -p /var/run
  bluetoothd --compat --nodetach &
  bluetoothd=$!
  patiently [ -S /var/run/sdp ]
}

# follow: runs each line from the host as a command, until the line "over", and reports the exit status and output of each.
follow() {
  cd "$HOME" || return
  while hear && [ "$heard" != over ]; do
    eval "$heard" >/tmp/said 2>&1 </dev/null
    report did "$? $(base64 -w 0 /tmp/said)"
  done
}

# meanwhile NAME COMMAND...: runs a command in the background, and reports it in the same way.
meanwhile() {
  name=$1
  shift
  {
    "$@" >"/tmp/$name" 2>&1 3<&-
    status=$?
    touch "/tmp/$name.over"
    report "$name" "$status $(base64 -w 0 "/tmp/$name")"
  } &
}

# serving LOG: whether the last device that was started has logged its policy, which follows its endpoints.
serving() { tail -n 1 "$1" | grep -q 'policy: '; }

# longer FILE LINES: whether the file has more lines.
longer() { [ "$(wc -l <"$1")" -gt "$2" ]; }

# has_at_most COUNT: whether the device has at most this number of open descriptors.
has_at_most() { [ "$(ls "/proc/$server/fd" | wc -l)" -le "$1" ]; }

# commands: prints the number of commands that the kernel has sent to the adapter, among them one for each call of a peer.
commands() { hciconfig hci0 | sed -nE 's/.*TX .*commands:([0-9]+).*/\1/p'; }

# calls NAME COUNT CALLS: waits until the prover that `meanwhile NAME` began has called its peer CALLS times since the adapter had COUNT
# commands. A call may last only milliseconds, so its socket might never be seen. Fails if the prover ends before, or makes no call.
calls() {
  for try in $(seq 600); do
    [ -e "/tmp/$1.over" ] && break
    [ "$(commands)" -ge $(($2 + $3)) ] && return
    sleep 0.1
  done
  echo "the prover made no calls, or has ended: $(commands) commands after $2"
  hcitool con
  return 1
}

has_no_link() { ! hcitool con | grep -q handle; }

# low_energy_links: prints the handle of each Low Energy link, one per line.
low_energy_links() { hcitool con | sed -nE 's/.* LE .* handle ([0-9]+) .*/\1/p'; }

has_no_low_energy_link() { [ -z "$(low_energy_links)" ]; }

# end_low_energy_links: ends each Low Energy link; one may end by itself before.
end_low_energy_links() {
  for handle in $(low_energy_links); do hcitool ledc "$handle" >/dev/null 2>&1; done
  within 60 has_no_low_energy_link
}
