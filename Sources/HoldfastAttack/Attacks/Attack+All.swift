/// All attacks on a device, in the order in which they are run.
///
/// Those that change what later ones see come last: a lockout, and floods.
extension Attack {
  package static let all: [Attack] =
    rounds + messages + proofs + compatibility + tokens + issuers + users + strangers
}
