// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "Courier", dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "Courier",
      dependencies: [
        .product(name: "HoldfastCore", package: "holdfast"), .product(name: "HoldfastProver", package: "holdfast"),
        .product(name: "HoldfastSDK", package: "holdfast"), .product(name: "HoldfastTransport", package: "holdfast"),
      ],
      plugins: [.plugin(name: "HoldfastProofKeys", package: "holdfast")])
  ])
