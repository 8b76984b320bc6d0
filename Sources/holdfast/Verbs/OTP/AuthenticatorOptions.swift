import ArgumentParser
import HoldfastAuthenticator

/// The option for the place of the authenticator.
struct AuthenticatorOptions: ParsableArguments {
  @Option(help: "The authenticator's folder.", completion: .directory)
  var authenticator: String

  init() {}

  init(folder: String) { authenticator = folder }

  func open() throws(Failure) -> Authenticator {
    do throws(AuthenticatorFault) { return try AuthenticatorFolder.open(at: authenticator) } catch {
      throw Failure(error, folder: authenticator)
    }
  }

  /// Opens the authenticator, after creating the folder and file if necessary.
  func create() throws(Failure) -> Authenticator {
    do throws(AuthenticatorFault) { return try AuthenticatorFolder.create(at: authenticator) } catch {
      throw Failure(making: error, folder: authenticator)
    }
  }

  /// Runs a step on the authenticator and converts its fault to a failure.
  @discardableResult
  func using<Result: ~Copyable>(_ body: () throws(AuthenticatorFault) -> Result) throws(Failure) -> Result {
    do throws(AuthenticatorFault) { return try body() } catch { throw Failure(error, folder: authenticator) }
  }
}

/// The options that select a record.
struct RecordOptions: ParsableArguments {
  @Option(help: "The user of the record; optional if there is only one user.")
  var user: String?

  @Option(help: "The index of the user's record, 1 to 8; optional if only one record fits.")
  var index: Int?

  func find(
    _ purpose: RecordPurpose, in authenticator: Authenticator, _ options: AuthenticatorOptions
  ) throws(Failure) -> Record {
    try options.using { () throws(AuthenticatorFault) in
      try authenticator.record(user: user, index: index, purpose: purpose)
    }
  }
}
