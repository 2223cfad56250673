// @ts-check
/** The attacker: runs one attack by name until it is done or told to stop, and tells what it saw. */

import { ATTACKS } from './attacks.js';
import { answerCalls } from './calls.js';

let going = true;
answerCalls({
  ready: () => {},
  run: ({ name, facts }) => ATTACKS.find((attack) => attack.name === name)?.run({ ...facts, going: () => going }),
  stop() {
    going = false;
  },
});
