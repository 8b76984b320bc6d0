#if Service
import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastService
import Logging
import Metrics

struct Init: ServiceVerb {
  static let configuration = CommandConfiguration(
    abstract: "Create the service: fresh keys in an empty database, and service.key in the folder.",
    discussion: """
      service.key encrypts all other keys in the database. Keep a copy of it apart from the database's backups: without it, they \
      are worthless. For another instance over the same database, copy the file instead.
      """)

  @OptionGroup var instance: InstanceOptions

  @Option(help: "The policy; by default one that issues tokens only for registered devices.", completion: .file())
  var policy: String?

  @Flag(help: "Succeed, and change nothing, if the database has a service already.")
  var ifMissing = false

  mutating func perform() async throws(ServiceFailure) {
    let configuration = try instance.configuration()
    let policy = try readPolicy()
    let path = "\(instance.dir)/service.key"
    do throws(FileError) {
      try Files.createPrivateDirectory(at: instance.dir)
      try Self.createKey(at: path)
    } catch {
      // After an interruption, the key is there, and the database is empty.
      guard error.kind == .exists else { throw ServiceFailure(error) }
    }
    let key = try instance.serviceKey()
    do throws(FleetFault) {
      try Fleet.create(
        in: instance.location(configuration), serviceKey: key, policy: policy, by: instance.caller.actor)
    } catch {
      if ifMissing, case .alreadyCreated = error { return }
      throw ServiceFailure(error)
    }
    Output.result("service created; its key is \(path)")
  }

  private func readPolicy() throws(ServiceFailure) -> ServicePolicy {
    guard let policy else { return ServicePolicy() }
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: policy, limit: ServicePolicy.maximumByteCount) } catch {
      throw ServiceFailure(error)
    }
    do throws(ServicePolicyFault) { return try ServicePolicy(json: bytes) } catch {
      switch error {
      case .malformed(let mistake), .member(let mistake): throw ServiceFailure(.malformed, mistake.text(in: policy))
      case .formerMember(let name): throw ServiceFailure(.malformed, "\(policy): \(name) is no longer read")
      }
    }
  }

  private static func createKey(at path: String) throws(FileError) {
    var random = SystemRandom()
    let secret: Secret<32>
    do throws(RandomFailure) { secret = try random.secret() } catch { throw FileError(.other(errno: 5), at: path) }
    try secret.withBytes { (bytes) throws(FileError) in
      try Files.writeFileAtomically(bytes, at: path, overwrite: false)
    }
  }
}

struct Serve: ServiceVerb {
  static let configuration = CommandConfiguration(
    abstract: "Serve provers and operators until SIGTERM or SIGINT.",
    discussion: """
      Any number of instances may serve one database. Log entries are JSON objects on standard error. One at the start, and one after \
      each change, says whether receipts for audit logs are signed; if not, why, and what to do.
      """)

  @OptionGroup var instance: InstanceOptions

  @Option(help: "The address, HOST:PORT, in place of the configuration's. Port 0 takes a free one.")
  var listen: String?

  @Flag(
    help: """
      Sign receipts for audit logs although no synchronous standby has the entries. Devices drop what a receipt acknowledges: it is \
      lost if the database is.
      """)
  var receiptsWithoutStandby = false

  @Flag(help: "Print the configuration with all defaults, and stop.")
  var printConfig = false

  mutating func perform() async throws(ServiceFailure) {
    var configuration = try instance.configuration()
    if let listen {
      do throws(JSONMistake) {
        guard case .object(var members) = configuration.json else { return }
        members[0].1 = .string(listen)
        let database = configuration.database
        configuration = try ServiceConfiguration(JSONMember(.object(members)))
        configuration.database = database
      } catch { throw ServiceFailure(.usage, "--listen: \(error.text)") }
    }
    if printConfig {
      Output.result(lines: configuration.json.pretty())
      return
    }
    let level = Logger.Level(rawValue: configuration.logLevel) ?? .info
    LoggingSystem.bootstrap { _ in JSONLog(logLevel: level) }
    let metrics = PrometheusMetrics()
    MetricsSystem.bootstrap(metrics)
    let fleet = try instance.fleet(configuration, receiptsWithoutStandby: receiptsWithoutStandby)
    let scheme = configuration.certificate == nil ? "http" : "https"
    let host = configuration.host
    let server = ServiceServer(
      fleet: fleet, configuration: configuration, logger: Logger(label: "holdfast-service"), metrics: metrics)
    do {
      try await server.run { port in
        Output.result("serving \(scheme)://\(host):\(port)")
        ServiceManager.tell(.ready)
      }
    } catch {
      throw ServiceFailure(
        .unavailable,
        "the service could not listen at \(host):\(configuration.port), or its certificate cannot be read",
        hint: "is the port free, and are certificate and key PEM files that this user may read? (\(type(of: error)))")
    }
  }
}
#endif
