import HoldfastCore
import HoldfastProver

/// The mail that honest couriers carry. Fetching and delivering are decided as by the prover of this project.
///
/// A prover fetches bulletins for all its devices at its times. As nothing at a prover changes between two visits of a device except by
/// fetching, which replaces its mail, it is enough to do the last fetch before a visit.
struct HonestCouriers {
  private struct Place: Hashable {
    let prover: Int32
    let device: Int32
  }

  private struct Carried {
    var mail = Mail()
    /// The time of the last fetch; nil if there was none.
    var fetched: UInt64?
  }

  /// The end of an honest courier's visit.
  enum Ending {
    /// The device's list was as the courier expected, and it had nothing to deliver.
    case idle
    /// The courier asked for the list, and had nothing to deliver.
    case asked
    /// The courier delivered bulletins.
    case delivered
  }

  private let answers: ServiceAnswers
  private var places: [Place: Carried] = [:]

  init(service: SimulatedService) { answers = ServiceAnswers(service) }

  /// Delivers what the device does not have.
  ///
  /// - Parameters:
  ///   - visit: the visit.
  ///   - synchronised: the time at which the prover fetched bulletins last; nil if it has not yet.
  ///   - state: the state of the device's list.
  ///   - connect: makes the connection, if it is needed.
  mutating func visit(
    _ visit: SimulatedVisit, synchronised: UInt64?, state: BulletinState, connect: () throws -> SimulatedConnection
  ) throws -> (ending: Ending, connection: SimulatedConnection?) {
    let place = Place(prover: Int32(visit.prover), device: Int32(visit.device))
    var carried = places[place] ?? Carried()
    if let synchronised, carried.fetched != synchronised {
      let answers = answers
      carried.mail.replace(by: Mail.fetch(for: carried.mail.list) { answers.answer(at: synchronised, above: $0) })
      carried.fetched = synchronised
    }
    var delivery = MailDelivery(of: carried.mail, byteLimit: CourierBudget().byteCount)
    var (connection, fault): (SimulatedConnection?, (any Error)?) = (nil, nil)
    var bulletinCount = 0
    do throws(ProverError) {
      try delivery.run(to: state) { (bulletin) throws(ProverError) in
        if bulletin != nil { bulletinCount += 1 }
        do {
          if connection == nil { connection = try connect() }
          if let answer = try connection?.exchange(bulletin) { return answer }
        } catch { fault = error }
        throw .session(.malformed)
      }
    } catch { if let fault { throw fault } }
    carried.mail = delivery.mail
    places[place] = carried
    return (bulletinCount > 0 ? .delivered : connection == nil ? .idle : .asked, connection)
  }
}
