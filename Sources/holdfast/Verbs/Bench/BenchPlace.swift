import ArgumentParser
import HoldfastCore
import HoldfastProver
import HoldfastTransport

/// The options for the device whose rounds are measured, and for the prover.
struct BenchPlace: ParsableArguments {
  @Option(help: "The device's endpoint, such as unix:/run/lock.sock or tty:/dev/ttyACM0.")
  var connect: String

  @OptionGroup var enrolled: StateOptions

  @Option(help: "The command for the device.")
  var command: String = "status"

  @OptionGroup var waiting: TimeoutOptions

  /// Returns the endpoint, and checks the other options.
  func endpoint() throws(Failure) -> Endpoint {
    _ = try waiting.milliseconds()
    return try Endpoint(peerArgument: connect)
  }

  /// Makes a proof of the command, and runs `body` with it and the time limit in milliseconds. Throws the failure that it returns.
  func proving(
    at endpoint: Endpoint, _ body: (borrowing Proof, Int) throws(ProverError) -> Failure?
  ) throws(Failure) {
    let timeoutMilliseconds = try waiting.milliseconds()
    let request = try Request(command: command, parameters: [])
    let choice = try enrolled.choice()
    let failure: Failure?
    do throws(ProverError) {
      let proof = try Prover(state: enrolled.state, keys: .app, warn: Console.warn).proof(
        choice, request, ProofOptions(timeoutMilliseconds: timeoutMilliseconds))
      failure = try body(proof, timeoutMilliseconds)
    } catch { throw Failure(error, folder: enrolled.state, endpoint: endpoint) }
    if let failure { throw failure }
  }
}
