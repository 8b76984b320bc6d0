import HoldfastCore
import HoldfastFormats
import HoldfastLinux

extension HoldfastClient {
  /// The account's texts on disk. Only the app and host that were attested can open them, as they were then.
  var stringsFile: SealedFile { sealedFile("strings.sealed") }
  /// The definitions of this host. They stay after an update of the app.
  private var definitionsFile: SealedFile { sealedFile("definitions.sealed") }

  private func sealedFile(_ name: String) -> SealedFile {
    let measurer = environment.measurer
    return SealedFile(name, in: folder, hostSecret: { try measurer.hostSecret() })
  }

  /// Fetches a text that the account or this host has under a name, after an attestation.
  ///
  /// The texts of the account are fetched together and kept sealed. For an hour, they are given without asking the service again,
  /// and for a day if no service can be reached; in both cases, only as long as the app and its host measure as they did at the
  /// attestation. A refusal removes them. A definition of this host comes before the account's, and is never sent anywhere.
  ///
  /// Source: Approov, `fetchSecureStringAndWait`.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 bytes of UTF-8 without control characters.
  ///   - newDefinition: a text of at most 4096 bytes that this host has under the name from now on; an empty one removes this
  ///     host's definition; nil changes nothing.
  /// - Returns: the result, with the text as ``FetchResult/secureString`` after success; nil after a definition was removed and the
  ///   account has none.
  public func fetchSecureString(_ name: String, newDefinition: String? = nil) -> FetchResult {
    guard SecureString.isName(name), newDefinition.map({ $0.isEmpty || SecureString.isDefinition($0) }) ?? true else {
      return finished(FetchResult(.badKey), "secure string")
    }
    let result: FetchResult
    do throws(NoAnswer) { result = try string(name, newDefinition, of: try fetchedStrings()) } catch {
      result = error.result
    }
    return finished(result, "secure string")
  }

  private func string(
    _ name: String, _ newDefinition: String?, of fetched: FetchedStrings
  ) throws(NoAnswer) -> FetchResult {
    let definitions: SecureString.Values
    do { definitions = try newDefinition.map { try define(name, as: $0) } ?? (try? readDefinitions()) ?? [:] } catch {
      options.log("holdfast: a secure string cannot be stored")
      throw NoAnswer(.internalError)
    }
    let key = Array(name.utf8)
    let text = definitions[key] ?? fetched.values[key]
    var result = FetchResult(text == nil && newDefinition == nil ? .unknownKey : .success)
    (result.secureString, result.arc) = (text, fetched.responseCode)
    return result
  }

  /// Returns the account's texts from memory, from the disk or from the service.
  private func fetchedStrings() throws(NoAnswer) -> FetchedStrings {
    guard let measurement = try? environment.measurer.measurement() else { throw NoAnswer(.internalError) }
    let kept = keptStrings(measurement)
    let age = kept?.age(at: environment.now(), bootID: environment.bootID)
    if let kept, let age, age < SecureString.freshSeconds { return kept }
    do throws(NoAnswer) {
      let attested = try attest(Wish(strings: true))
      let fetched = FetchedStrings(
        values: attested.answer.strings ?? [:], responseCode: attested.answer.responseCode, fetched: attested.asked,
        bootID: environment.bootID)
      let measurement = attested.evidence.measurement
      // Another thread may have been refused since this one asked; then they are given, but not kept.
      let isKept = state.withLock { state in
        guard state.refusalCount == attested.refusalCount else { return false }
        state.strings = (fetched, measurement)
        return true
      }
      if isKept {
        // Without a disk, they count at least for this process.
        try? stringsFile.write(fetched.encoded, boundTo: measurement)
        if state.withLock({ $0.refusalCount }) != attested.refusalCount { try? stringsFile.remove() }
      }
      return fetched
    } catch {
      switch error.result.status {
      case .noNetwork, .poorNetwork, .noService:
        if let kept, let age, age < SecureString.offlineSeconds { return kept }
      default: break
      }
      throw error
    }
  }

  private func keptStrings(_ measurement: Digest) -> FetchedStrings? {
    if let strings = state.withLock({ $0.strings }), strings.measurement == measurement { return strings.fetched }
    return stringsFile.read(boundTo: measurement).flatMap { FetchedStrings($0) }
  }

  /// Returns the definitions of this host.
  ///
  /// - Throws: an error if there is a file that cannot be read. To replace it would lose what it defines.
  private func readDefinitions() throws -> SecureString.Values {
    guard let bytes = try definitionsFile.content(boundTo: nil) else { return [:] }
    guard let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count), value["version"]?.number == 1,
      let values = SecureString.values(value["strings"])
    else { throw SealedFile.Unopenable() }
    return values
  }

  /// Stores or removes a definition of this host, and returns all. It is on the disk when this returns.
  private func define(_ name: String, as text: String) throws -> SecureString.Values {
    let turns = try FolderTurns(directory: folder.path)
    return try turns.take(orThrow: FileError(.locked, at: folder.path) as any Error) {
      var definitions = try readDefinitions()
      let key = Array(name.utf8)
      guard !haveSameBytes(definitions[key] ?? "", text) else { return definitions }
      definitions[key] = text.isEmpty ? nil : text
      guard definitions.count <= SecureString.definitionLimit else { throw FileError(.tooLarge, at: folder.path) }
      let content = JSONValue.object([("version", .integer(1)), ("strings", SecureString.json(definitions))])
      try definitionsFile.write(content.compact(), boundTo: nil)
      return definitions
    }
  }
}
