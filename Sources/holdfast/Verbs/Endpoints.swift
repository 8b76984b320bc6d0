import ArgumentParser
import HoldfastTransport

/// The page that `holdfast help endpoints` shows. It describes the options that name the endpoint of a device.
package struct Endpoints: ParsableCommand {
  package init() {}

  package static let configuration = CommandConfiguration(
    abstract: "Describe the endpoints for --connect, --listen and --to (a help page).",
    discussion: """
      \(Scheme.all.map { "\($0.form)\n    \($0.summary)" }.joined(separator: "\n"))

      With --listen, unix and unix-stream also accept mode=660, the permissions of the file from 0 to 777, and group=lock, a \
      group by name or number. The default mode is 600, or 660 if a group is given. A socket that systemd passes for the path \
      is used instead of a new one, and its unit determines mode and group.

      ADDRESS is six pairs of hexadecimal digits with colons between them. With --listen, 00:00:00:00:00:00 is any adapter. A \
      path contains no comma; the path of a socket has at most 107 bytes.

      All Bluetooth endpoints also accept hci=hci0, the adapter of this host, and security=low, medium or high: no encryption, \
      an encrypted link, or an encrypted link to a peer that pairing authenticated. Without psm or channel, the kernel \
      chooses the number for an l2cap or rfcomm listener, and the prover asks the device's host for it.
      """,
    examples: [
      "holdfast device serve --dir lock \\\n--listen unix:/run/lock.sock,mode=660,group=lock",
      "holdfast prove --connect rfcomm:00:1A:7D:DA:71:13,channel=5,security=high \\\n--state phone --command unlock",
      "holdfast doctor le:00:1A:7D:DA:71:13,psm=0x80",
      "holdfast device bridge --to tty:/dev/ttyUSB0 --listen unix:/run/lock.sock",
    ])

  package func run() throws { throw CleanExit.helpRequest(self) }
}
