/** Every check of an outsider has its tests, which are there. */
import t from "tap";
import { readText } from "../tidy/sources.js";
import { EXAM } from "./exam.js";

const CHECKS = 20;

t.test("every check has tests that do it", (t) => {
  t.equal(EXAM.length, CHECKS);
  for (const { check, proofs } of EXAM) {
    t.ok(proofs.length > 0, check);
    for (const { file, name } of proofs) {
      t.ok(readText(`test/${file}`).includes(name), `${check}: ${file} has "${name}"`);
    }
  }
  t.end();
});
