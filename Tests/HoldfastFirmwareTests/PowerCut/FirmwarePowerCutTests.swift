import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

/// The power is cut after every word that a small device's life programs or erases.
@Suite struct FirmwarePowerCutTests {
  @Test func `a power cut at any word forgets nothing that was promised, and the device starts and goes on`() throws {
    let recording = try FirmwareRecording()
    var faults: [String] = []
    var pointCount = 0
    for step in recording.moments.indices {
      for wordCount in recording.cuts(in: step) where faults.count < 5 {
        pointCount += 1
        guard let fault = try recording.fault(step, wordCount: wordCount) else { continue }
        faults.append("\(FirmwareLife.steps[step].name), \(wordCount) words: \(fault)")
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
    #expect(pointCount > 2000)
    print("power cut at \(pointCount) points, and \(recording.secondCutCount) times again at the start that follows")
  }

  @Test func `what was used up before a start stays used up`() throws {
    let recording = try FirmwareRecording()
    for (step, moment) in recording.moments.enumerated() {
      let name = FirmwareLife.steps[step].name
      #expect(try recording.spentAgain(after: step) == nil, "\(name)")
      // A repetition, and a round that is denied and changes nothing, write nothing: there is only the start.
      let (isSilent, wordCount) = (FirmwareLife.isSilent(step), moment.wordCount)
      // Its count of starts is a byte longer from the 24th on.
      #expect(isSilent ? (8...9).contains(wordCount) : wordCount > 10, "\(name): \(wordCount) words")
    }
  }
}

/// A life, and what it promised in each step.
private final class FirmwareRecording {
  struct Moment {
    let image: [UInt8]
    let memory: FirmwareLife.Memory
    let milliseconds: UInt64
    /// The facts that were known before the step, and after each promise in it.
    let promised: [StoreContents]
    let wordCount: Int
  }

  private let life: FirmwareLife
  private(set) var moments: [Moment] = []
  private(set) var secondCutCount = 0
  private let plenty = 1_000_000_000

  init() throws {
    life = try FirmwareLife()
    for step in FirmwareLife.steps {
      let (image, memory) = (life.firmware.flash.image, life.memory)
      let before = try #require(life.firmware.contents())
      let machine = try life.boot(wordCount: plenty)
      guard try step.run(life, machine) else {
        throw UnexpectedStep(name: step.name, status: machine.response?.status)
      }
      moments.append(
        Moment(
          image: image, memory: memory, milliseconds: life.firmware.clock.monotonicMilliseconds(),
          promised: [before] + machine.withStore { $0.promised },
          wordCount: plenty - machine.withStore { $0.remainingWordCount }))
    }
  }

  struct UnexpectedStep: Error {
    let name: String
    let status: Status?
  }

  /// Every word but most of those that are only erased before a change of slots, which is tried at every word of a journal
  /// (``JournalTests``): of those, the first ones and every 61st.
  func cuts(in step: Int) -> [Int] {
    let (count, erased) = (moments[step].wordCount, FlashLayout.slotByteCount / 4)
    guard count > erased else { return Array(0..<count) }
    return (0..<count).filter { $0 < 40 || $0 % 61 == 0 || $0 > erased - 4 }
  }

  private var flash: TestFlash { life.firmware.flash }

  /// The fault after the power fails in a step, after that number of words; nil if there is none.
  func fault(_ step: Int, wordCount: Int) throws -> String? {
    let moment = moments[step]
    (flash.image, life.memory) = (moment.image, moment.memory)
    var promisedCount = 0
    if let machine = try? life.boot(wordCount: wordCount) {
      _ = try? FirmwareLife.steps[step].run(life, machine)
      promisedCount = machine.withStore { $0.promised.count }
    }
    let after = flash.image
    guard let found = life.firmware.contents() else { return "the device denies" }
    guard moment.promised[promisedCount...].prefix(2).contains(found) else {
      return "it holds something else than after \(promisedCount) promises"
    }
    if let fault = faultOfSecondCut(after, found, wordCount) { return fault }
    flash.image = after
    return try faultOfGoingOn(found)
  }

  /// Cuts the power again while the device starts.
  private func faultOfSecondCut(_ image: [UInt8], _ found: StoreContents, _ seed: Int) -> String? {
    for wordCount in [0, 1, 2 + seed % 20, 22 + seed % 17] {
      flash.image = image
      _ = try? life.boot(wordCount: wordCount)
      secondCutCount += 1
      guard var again = life.firmware.contents() else { return "denies after a second cut at \(wordCount)" }
      // The start itself may have been counted.
      (again.bootCount, again.audit) = (found.bootCount, found.audit)
      guard again == found else { return "forgets by a second cut at \(wordCount)" }
    }
    return nil
  }

  private func faultOfGoingOn(_ found: StoreContents) throws -> String? {
    let machine = try life.boot(wordCount: plenty)
    let now = machine.withStore { $0.promised.last }
    guard let now, now.bootCount == found.bootCount + 1, now.items == found.items else { return "starts otherwise" }
    let status = try machine.status(life.lasting)
    guard status == .accepted else { return "answers \(status) to a good token" }
    let isWhole = try machine.withStore { try $0.store.auditEntries().isWhole }
    return isWhole ? nil : "has a broken audit chain"
  }

  /// Which of the things that were used up is taken once more after a step; nil when none is.
  func spentAgain(after step: Int) throws -> Int? {
    let isLast = step + 1 == moments.count
    if !isLast { (flash.image, life.memory) = (moments[step + 1].image, moments[step + 1].memory) }
    let image = flash.image
    for (index, isTaken) in life.memory.spent.enumerated() {
      flash.image = image
      if try isTaken(life, try life.boot(wordCount: plenty)) { return index }
    }
    flash.image = image
    return nil
  }
}
