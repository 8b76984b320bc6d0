import CDisturbance
import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// A small prover that tests start, disturb and look at.
///
///     MeasurementProbe baseline FILE [DISTURBANCE]   takes a baseline, writes its configuration
///     MeasurementProbe measure FILE [DISTURBANCE…]   measures for a configuration
///     MeasurementProbe explain FILE [DISTURBANCE]    measures disturbed; prints what changed since the baseline
///     MeasurementProbe changes FILE [DISTURBANCE]    measures undisturbed, then disturbed; prints what changed
///
/// `MeasurementProbe hardened VERB …` does the same after it has opened what needs it, and stopped being dumpable. A DISTURBANCE
/// is a name and its arguments, with commas between.
///
/// `MeasurementProbe lie-dumpable… hardened VERB …` does the same while somebody answers for the kernel when it stops being dumpable.
///
///     MeasurementProbe time                          prints what each component takes, in microseconds
///     MeasurementProbe known FILE                    measures for a configuration at each line of input, which is a DISTURBANCE or
///                                                    empty; prints whether the code was known, and a digest of the app's components

func stop(_ message: String) -> Never {
  print("error \(message)")
  exit(2)
}

func disturb(_ description: String) {
  let words = description.split(separator: ",").map(String.init)
  let result =
    switch words[0] {
    case "dlopen": disturb_by_dlopen()
    case "forget-preload": disturb_by_forgetting_preload()
    case "poke": disturb_by_poke()
    case "kernel-code": disturb_by_kernel_code()
    case "replace-executable": disturb_by_replacing(nil)
    case "replace": unsafe disturb_by_replacing(words[1])
    case "delete-executable": disturb_by_deleting()
    case "mount-over": unsafe disturb_by_mounting_over(words[1])
    case "mount-process": unsafe disturb_by_mounting_process(words.count > 1 ? words[1] : "")
    case "mount-link": unsafe disturb_by_mounting_link(words[1])
    case "fork": disturb_by_fork()
    case "short-threads": disturb_by_short_threads()
    case "refuse-call": unsafe disturb_by_refusing_call(words[1], Int32(words[2])!)
    // The supervisor reads the path for as long as the process lives.
    case "refuse-path": unsafe disturb_by_refusing_path(strdup(words[1]), Int32(words[2])!)
    case "lie-dumpable": disturb_by_lying_of_dumpable(0)
    case "lie-dumpable-always": disturb_by_lying_of_dumpable(1)
    case "lie-dumpable-supervised": disturb_by_supervising_dumpable()
    case "tracer": disturb_by_tracer()
    case "thread-tracer": disturb_by_thread_tracer()
    case "anonymous-code": disturb_by_anonymous_code()
    case "mapped-file": disturb_by_mapped_file()
    case "text-patch": disturb_by_text_patch()
    case "memory-file": disturb_by_memory_file()
    case "restored-text": disturb_and_restore_text()
    case "execute-only": disturb_by_execute_only()
    case "writable-code": disturb_by_writable_code()
    case "meanwhile": disturb_meanwhile()
    case "agent-thread": unsafe disturb_by_thread("gum-js-loop")
    case "plain-thread": unsafe disturb_by_thread("gmain")
    default: stop("unknown disturbance")
    }
  guard result == 0 else { stop("disturbance \(errno)") }
}

func hexadecimal(_ secret: borrowing Secret<32>) -> String {
  let digits = Array("0123456789abcdef")
  var text = ""
  secret.withBytes { bytes in
    for index in bytes.indices {
      text.append(digits[Int(bytes[index] >> 4)])
      text.append(digits[Int(bytes[index] & 15)])
    }
  }
  return text
}

func read(_ path: String) -> [UInt8] {
  guard let file = unsafe fopen(path, "r") else { stop("configuration") }
  defer { unsafe fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 4096)
  let count = unsafe bytes.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, file) }
  return Array(bytes[..<count])
}

func load(_ path: String) -> MeasurementConfiguration {
  let bytes = read(path)
  guard let configuration = try? MeasurementConfiguration(decoding: bytes.span) else { stop("configuration") }
  return configuration
}

func save(_ bytes: [UInt8], _ path: String) {
  guard let file = unsafe fopen(path, "w") else { stop("configuration") }
  let count = unsafe bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
  guard unsafe fclose(file) == 0, count == bytes.count else { stop("configuration") }
}

/// The policy of baselines: HOLDFAST_PROBE_POLICY, a number.
let policy = MeasurementPolicy(
  rawValue: unsafe getenv("HOLDFAST_PROBE_POLICY").flatMap { unsafe UInt8(String(cString: $0)) } ?? 0)

func takeBaseline(_ path: String) throws {
  var measurer = Measurer(keys: .default)
  var random = SystemRandom()
  let baseline = try measurer.takeBaseline(
    subject: BoundedText("probe"), version: AppVersion(major: 1, minor: 0, patch: 0),
    policy: policy, clock: SystemClock(),
    random: &random)
  save(baseline.configuration.encoded(), path)
  save(baseline.fingerprints.encoded(), path + ".fingerprints")
  printMeasurement(baseline.measurement)
}

func printMeasurement(_ measurement: LiveMeasurement) {
  for property in measurement.properties { print("property \(property)") }
}

func measure(_ path: String) throws {
  var measurer = Measurer(keys: .default)
  let measurements = try measurer.provableMeasurements(for: load(path))
  print("im", hexadecimal(measurements.integrity))
  print("dm", hexadecimal(measurements.device))
}

func printChanges(_ path: String, _ disturbance: String?) throws {
  var measurer = Measurer(keys: .default)
  let configuration = load(path)
  let before = try measurer.measure(for: configuration)
  if let disturbance { disturb(disturbance) }
  let after = try measurer.measure(for: configuration)
  let now = try measurer.fingerprints(of: after, for: configuration)
  let changes = now.changedComponents(since: try measurer.fingerprints(of: before, for: configuration))
  for id in changes { print("changed \(id)") }
  printMeasurement(after)
}

func explain(_ path: String, _ disturbance: String?) throws {
  let configuration = load(path)
  let encoded = read(path + ".fingerprints")
  let baseline = try BaselineFingerprints(decoding: encoded.span)
  if let disturbance { disturb(disturbance) }
  var measurer = Measurer(keys: .default)
  let changes = try measurer.changes(since: baseline, for: configuration)
  for entry in changes.entries where entry.state != .unchanged { print("\(entry.state) \(entry.id)") }
  printMeasurement(try measurer.measure(for: configuration))
}

func printTimes() throws {
  var measurer = Measurer(keys: .default)
  for round in ["first", "second", "third"] {
    let start = SystemClock().nanoseconds
    let measurement = try measurer.measure(makingDeviceSecret: true)
    let whole = SystemClock().nanoseconds - start
    for part in measurement.durations { print("\(round) \(part.id) \(part.nanoseconds / 1000)") }
    print("\(round) whole \(whole / 1000)")
  }
}

/// Measures once before any input, and once after each line: a disturbance, `under POLICY` for another policy than the
/// configuration's from then on, or `complete FILE` for a proof of the last measurement under another configuration.
func measureAtEachLine(_ path: String) throws {
  var measurer = Measurer(keys: .default)
  let configuration = load(path)
  var policy: MeasurementPolicy?
  repeat {
    let start = SystemClock().nanoseconds
    let measurement =
      if let policy { try measurer.measure(under: policy) } else { try measurer.measure(for: configuration) }
    let microseconds = (SystemClock().nanoseconds - start) / 1000
    let app = measurement.app.map { "\($0.digest.bytes[0]).\($0.digest.bytes[1])" }.joined(separator: " ")
    print(measurement.isCodeKnown ? "known" : "hashed", microseconds, app)
    fflush(nil)
    guard let line = readLine() else { return }
    let words = line.split(separator: " ")
    switch words.first {
    case nil: break
    case "under": policy = MeasurementPolicy(rawValue: UInt8(words[1])!)
    case "complete": try complete(measurement, for: load(String(words[1])), &measurer)
    default: disturb(line)
    }
  } while true
}

/// Stops if a proof of a measurement from before a change of the code has the digests from before.
func complete(
  _ measurement: LiveMeasurement, for configuration: MeasurementConfiguration, _ measurer: inout Measurer
) throws {
  disturb("text-patch")
  let completed = try measurer.provableMeasurements(of: measurement, for: configuration)
  let now = try measurer.provableMeasurements(for: configuration)
  guard hexadecimal(completed.integrity) == hexadecimal(now.integrity) else { stop("not hashed") }
}

extension SystemClock {
  var nanoseconds: UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

var arguments = CommandLine.arguments
if arguments.count > 1, arguments[1].hasPrefix("lie-dumpable") { disturb(arguments.remove(at: 1)) }
if arguments.count > 1, arguments[1] == "hardened" {
  arguments.remove(at: 1)
  ProcessFiles.keepOpen()
  guard ProcessHardening.apply() else { stop("hardening") }
}
do {
  switch (arguments.dropFirst().first, arguments.count) {
  case ("baseline", 3...4):
    if arguments.count == 4 { disturb(arguments[3]) }
    try takeBaseline(arguments[2])
    try measure(arguments[2])
  case ("measure", 3...):
    for disturbance in arguments[3...] { disturb(disturbance) }
    try measure(arguments[2])
  case ("changes", 3...4): try printChanges(arguments[2], arguments.count == 4 ? arguments[3] : nil)
  case ("explain", 3...4): try explain(arguments[2], arguments.count == 4 ? arguments[3] : nil)
  case ("time", 2): try printTimes()
  case ("known", 3): try measureAtEachLine(arguments[2])
  default: stop("usage")
  }
} catch {
  stop("\(error)")
}
