"""Every intermediate value of the worked example, recomputed."""

import json
import pathlib

import pytest
from holdfast_peer import base64strict, cbor, claims, cose, jose, measurement, session
from holdfast_peer.keys import PrivateKey
from holdfast_peer.primitives import sha256

EXAMPLE = json.loads((pathlib.Path(__file__).parent / "worked-example.json").read_text())
hex_bytes = bytes.fromhex


class TestMeasurement:
    def setup_method(self):
        self.values = EXAMPLE["measurement"]
        self.app = [(k, hex_bytes(v)) for k, v in self.values["app"].items()]
        self.device = [(k, hex_bytes(v)) for k, v in self.values["device"].items()]
        self.salt = hex_bytes(self.values["salt"])
        self.configuration = hex_bytes(self.values["configuration"])

    def test_configuration(self):
        fields = measurement.parse_configuration(self.configuration)
        made = measurement.configuration(
            self.salt,
            measurement.proof_key_id(hex_bytes(self.values["mpk"])),
            dict(self.app),
            dict(self.device),
            fields["created"],
        )
        assert made == self.configuration

    def test_component_arrays(self):
        assert measurement.component_array(self.app + self.device).hex() == self.values["C"]
        assert measurement.component_array(self.device).hex() == self.values["C_device"]

    def test_measurements(self):
        im = measurement.integrity_measurement(self.salt, self.configuration, self.app, self.device)
        dm = measurement.device_measurement(self.salt, self.configuration, self.device)
        assert (im.hex(), dm.hex()) == (self.values["im"], self.values["dm"])


class TestToken:
    def setup_method(self):
        keys = EXAMPLE["keys"]
        self.keys = keys
        self.issuer = PrivateKey(hex_bytes(keys["issuer_private"]))
        self.device = PrivateKey(hex_bytes(keys["device_private"]))
        self.ephemeral = PrivateKey(hex_bytes(keys["ephemeral_private"]))
        self.claims_cbor = hex_bytes(EXAMPLE["claims_cbor"])
        self.claims = claims.from_cbor(self.claims_cbor)
        self.device_id = base64strict.url_decode(EXAMPLE["claims_json"]["aud"])

    def test_keys(self):
        assert self.issuer.kid.hex() == self.keys["issuer_kid"]
        assert self.device.kid.hex() == self.keys["device_kid"]
        assert self.device.point.hex() == self.keys["device_point"]
        assert self.ephemeral.exchange(self.device.point).hex() == self.keys["ecdh_shared_secret"]

    def test_claims(self):
        assert claims.to_cbor(self.claims) == self.claims_cbor
        assert claims.to_members(self.claims) == EXAMPLE["claims_json"]
        assert claims.from_json(json.dumps(EXAMPLE["claims_json"]).encode()) == self.claims

    def test_cose_layers(self):
        values = EXAMPLE["cose"]
        recipient = cose.recipient_protected(self.device.kid)
        assert recipient.hex() == values["recipient_protected"]
        assert cose.kdf_context(recipient).hex() == values["kdf_context"]
        secret = hex_bytes(self.keys["ecdh_shared_secret"])
        assert cose.content_key(secret, recipient).hex() == values["content_key"]
        assert self.keys["iv"] in values["token"]

    def test_jose_key(self):
        secret = hex_bytes(self.keys["ecdh_shared_secret"])
        assert jose.agreed_key(secret, jose.DIRECT).hex() == EXAMPLE["jose"]["content_key"]

    def test_tokens_open(self):
        for module, token in ((cose, hex_bytes(EXAMPLE["cose"]["token"])), (jose, EXAMPLE["jose"]["token"].encode())):
            opened = module.open_token(token, self.device, [self.issuer.point], self.device_id)
            assert opened == (self.claims, self.issuer.point)

    def test_tokens_of_our_own_open(self):
        for module in (cose, jose):
            token = module.seal(self.claims, self.issuer, self.device.point, self.ephemeral, bytes(12))
            opened = module.open_token(token, self.device, [self.issuer.point], self.device_id)
            assert opened == (self.claims, self.issuer.point)

    def test_cose_token_repeats_but_for_the_signature(self):
        token = hex_bytes(EXAMPLE["cose"]["token"])
        plaintext = cose.decrypt(token, self.device)
        assert cose.encrypt(plaintext, self.device.point, self.ephemeral, hex_bytes(self.keys["iv"])) == token


class TestRounds:
    @pytest.mark.parametrize("values", EXAMPLE["rounds"], ids=lambda values: values["name"])
    def test_every_value(self, values):
        proof_key, im, dm = (hex_bytes(EXAMPLE["measurement"][k]) for k in ("mpk", "im", "dm"))
        self.check({k: hex_bytes(v) for k, v in values.items() if k != "name"}, proof_key, im, dm)

    def check(self, values, proof_key, im, dm):
        m1, head = values["m1"], values["head"]
        made = session.Round(m1, head, proof_key, dm)
        assert made.transcript == values["th"]
        assert made.nonce == values["nonce"]
        assert made.prover_to_device == values["k_p2d"]
        assert made.device_to_prover == values["k_d2p"]
        assert made.prove(im) == values["imp"]
        assert made.prove(dm) == values["dmp"]
        assert session.request("unlock") == values["request"]
        sealed = made.seal_request(values["request"])
        assert session.message_2(head, values["imp"], values["dmp"], sealed) == values["m2"]
        assert session.result(b"unlocked") == values["m3_plaintext"]
        assert session.message_3(0, made.seal_result(0, values["m3_plaintext"])) == values["m3"]
        self.parse(values, made)

    def parse(self, values, made):
        first = session.parse_message_1(values["m1"])
        assert session.message_1(*first.values()) == values["m1"]
        second = session.parse_message_2(values["m2"])
        head = session.message_2_head(second["proverRandom"], second["encoding"], second["token"])
        assert head == values["head"]
        if second["encoding"] == session.REFERENCE:
            assert second["token"] == session.token_reference(hex_bytes(EXAMPLE["cose"]["token"]))
        third = session.parse_message_3(values["m3"])
        assert session.parse_result(made.open_result(0, third["sealed"])) == {"result": b"unlocked"}


class TestSeal:
    def test_question(self):
        values = EXAMPLE["seal"]
        question = sha256(b"holdfast/1 seal\x00" + cbor.encode([values["command"], values["parameters"]]))
        assert question.hex() == values["question"]
