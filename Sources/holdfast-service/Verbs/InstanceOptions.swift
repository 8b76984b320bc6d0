#if Service
import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastLinux
import HoldfastService

/// The options that say which service a verb is for.
struct InstanceOptions: ParsableArguments {
  @Option(
    help: "The service's folder, with service.key, and with the database unless it is PostgreSQL.",
    completion: .directory)
  var dir = "/var/lib/holdfast-service"

  @Option(help: "The configuration; by default config.json in the folder, if there is one.", completion: .file())
  var config: String?

  @Option(help: "A PostgreSQL database by its URL, in place of the configuration's.")
  var database: String?

  /// Reads the configuration.
  func configuration() throws(ServiceFailure) -> ServiceConfiguration {
    let path = config ?? "\(dir)/config.json"
    var configuration = ServiceConfiguration()
    let bytes: [UInt8]?
    do throws(FileError) { bytes = try Files.readFile(at: path, limit: 1 << 16) } catch {
      guard config == nil, error.kind == .notFound else { throw ServiceFailure(error) }
      bytes = nil
    }
    if let bytes {
      do throws(JSONMistake) { configuration = try ServiceConfiguration(JSONMember(parsing: bytes)) } catch {
        throw ServiceFailure(.malformed, error.located(in: bytes).text(in: path))
      }
    }
    if let database {
      guard !ServiceConfiguration.hasPassword(database) else {
        throw ServiceFailure(
          .usage, "--database must not have a password, which other users could see",
          hint: "put the URL into the configuration, or the password into ~/.pgpass")
      }
      configuration.database = database
    }
    return configuration
  }

  /// The place of the database.
  func location(_ configuration: ServiceConfiguration) -> DatabaseLocation {
    configuration.database.map { .postgreSQL(url: $0) } ?? .sqlite(path: "\(dir)/service.sqlite")
  }

  /// Reads the service key: among the credentials that the service manager passes, or in the folder.
  func serviceKey() throws(ServiceFailure) -> ServiceKey {
    let credential = ServiceManager.credential("service.key")
    let path = credential ?? "\(dir)/service.key"
    let key: Secret<32>?
    do throws(FileError) {
      key = try Files.readSecretFile(at: path, limit: 33, requirements: credential == nil ? .secret : []) {
        Secret<32>(copying: $0)
      }
    } catch { throw ServiceFailure(error) }
    guard let key else { throw ServiceFailure(.malformed, "\(path) does not have 32 bytes") }
    return ServiceKey(key)
  }

  /// Opens the service.
  func fleet(
    _ configuration: ServiceConfiguration, receiptsWithoutStandby: Bool = false
  ) throws(ServiceFailure) -> Fleet {
    let key = try serviceKey()
    do throws(FleetFault) {
      return try Fleet(
        location(configuration), serviceKey: key, connectionCount: Int(configuration.databaseConnections),
        receiptsWithoutStandby: receiptsWithoutStandby, clock: SteadyClock())
    } catch { throw ServiceFailure(error) }
  }

  /// The operator at the command line, who has the database and the key.
  var caller: Operator { .local("user \(getuid()) on this host") }
}

extension JSONMember {
  /// Parses the content of a file.
  init(parsing bytes: [UInt8]) throws(JSONMistake) {
    let limit = 1 << 16
    do throws(JSONFault) { self.init(try JSONValue(parsing: bytes, byteLimit: limit)) } catch {
      throw JSONMistake(in: bytes, byteLimit: limit) ?? JSONMistake(at: [], expected: .syntax)
    }
  }
}
#endif
