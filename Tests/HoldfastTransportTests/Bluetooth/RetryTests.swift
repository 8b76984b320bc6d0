import HoldfastLinux
import HoldfastTransport
import Testing

@Suite("Attempts to connect over Bluetooth")
struct RetryTests {
  /// Makes attempts that fail with `errors`, one each, and then succeed. Returns the number of attempts and the last error.
  private func attempts(
    _ errors: [TransportError], over radio: Scheme.Radio, milliseconds: Int = 60_000,
    pageTimeoutMilliseconds: Int = OpenFile.defaultPageTimeoutMilliseconds, unless wakeUp: WakeUp? = nil
  ) -> (count: Int, error: TransportError?) {
    var count = 0
    do throws(TransportError) {
      try OpenFile.retrying(
        over: radio, by: Deadline(afterMilliseconds: milliseconds), pageTimeoutMilliseconds: pageTimeoutMilliseconds,
        unless: wakeUp
      ) { _ throws(TransportError) in
        count += 1
        if count <= errors.count { throw errors[count - 1] }
      }
    } catch { return (count, error) }
    return (count, nil)
  }

  @Test("a refusal is final when it is the third", arguments: [Scheme.Radio.classic, .lowEnergy])
  func refusals(radio: Scheme.Radio) {
    #expect(attempts([.refused], over: radio) == (2, nil))
    #expect(attempts([.refused, .unreachable, .refused], over: radio) == (4, nil))
    #expect(attempts([.refused, .refused, .refused], over: radio) == (3, .refused))
  }

  @Test("a refused security is also tried again")
  func notSecured() {
    #expect(attempts([.refused, .notSecured], over: .classic) == (3, nil))
    #expect(attempts([.notSecured, .notSecured, .refused], over: .classic) == (3, .refused))
  }

  @Test(
    "without time there is one attempt, and with all the time as many as it takes",
    arguments: [Scheme.Radio.classic, .lowEnergy])
  func times(radio: Scheme.Radio) {
    for milliseconds in [0, -1, Int.min] {
      #expect(attempts([.unreachable], over: radio, milliseconds: milliseconds) == (1, .unreachable))
    }
    #expect(attempts([.unreachable, .unreachable], over: radio, milliseconds: .max) == (3, nil))
  }

  @Test("a peer that the adapter has called for its whole page timeout is absent")
  func absent() {
    #expect(OpenFile.defaultPageTimeoutMilliseconds == 5120)
    #expect(attempts([.unreachable], over: .classic, pageTimeoutMilliseconds: 0) == (1, .unreachable))
    #expect(attempts([.linkLost, .unreachable], over: .classic, pageTimeoutMilliseconds: 0) == (2, .unreachable))
  }

  @Test(
    "whatever ends otherwise is tried again however long it took",
    arguments: [TransportError.linkLost, .closed, .addressInUse])
  func late(error: TransportError) {
    #expect(attempts([error, error], over: .classic, pageTimeoutMilliseconds: 0) == (3, nil))
    #expect(attempts([error, .unreachable], over: .lowEnergy, pageTimeoutMilliseconds: 0) == (3, nil))
  }

  @Test("a wake-up ends the attempts")
  func cancelled() throws {
    let wakeUp = try WakeUp()
    wakeUp.raise()
    #expect(attempts([.unreachable, .unreachable], over: .classic, unless: wakeUp) == (1, .cancelled))
  }

  @Test("what cannot pass is final at once", arguments: [TransportError.noAdapter, .unsupported, .cancelled])
  func final(error: TransportError) {
    #expect(attempts([error], over: .classic) == (1, error))
  }
}
