// swift-tools-version: 6.2
import PackageDescription

// A nested package, because a build for Linux must not need BearSSL's headers. `make firmware` builds it.

// The Makefile's device.o must get the same options that change code.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .treatWarning("EmbeddedRestrictions", as: .error),
  .enableExperimentalFeature("Lifetimes"),
]

let package = Package(
  name: "firmware-sim",
  products: [
    .library(name: "HoldfastBoard", targets: ["HoldfastBoard"]),
    .library(name: "HoldfastBearSSL", targets: ["HoldfastBearSSL"]),
  ],
  dependencies: [.package(name: "holdfast", path: "..")],
  targets: [
    // The board: QEMU's mps2-an386.
    .target(name: "CBoard"),
    .target(
      name: "HoldfastBoard",
      dependencies: [
        "CBoard", .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),

    // The core's cryptography on this board.
    .target(name: "CBearSSL", exclude: ["curve"]),
    .target(
      name: "HoldfastBearSSL",
      dependencies: ["CBearSSL", .product(name: "HoldfastCore", package: "holdfast")], swiftSettings: strict),

    // The device.
    .target(
      name: "Firmware",
      dependencies: [
        "HoldfastBoard", "HoldfastBearSSL", .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),

    // Images that answer test questions about the board, the cryptography and the test vectors.
    .target(name: "CBoardTest", exclude: ["layouts.c", "field.c"]),
    .target(name: "BoardQuestions", dependencies: ["CBoardTest", "HoldfastBoard"], swiftSettings: strict),
    .target(
      name: "BoardTest",
      dependencies: [
        "BoardQuestions", "HoldfastBoard", "HoldfastBearSSL", "CBearSSL", "CBoardTest",
        .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),
    .target(
      name: "VectorTest",
      dependencies: [
        "BoardQuestions", "HoldfastBoard", "HoldfastBearSSL", .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastReplay", package: "holdfast"),
      ],
      swiftSettings: strict),
  ]
)
