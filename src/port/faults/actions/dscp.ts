import type { FaultActionKind } from '../fault-action.js';
import { integer } from '../numbers.js';

export interface DscpCounters {
  /** Frames whose DSCP a fault rule rewrote. */
  faults_dscp: number;
}

const DSCP_MAX = 63;

export const dscp: FaultActionKind<keyof DscpCounters> = {
  name: 'dscp',
  form: 'dscp=N',
  example: 'dscp=46',
  does: 'sets the DSCP to N (0 to 63) and keeps ECN',
  counter: 'faults_dscp',
  parse: (values) => {
    const codepoint = values.length === 1 ? integer(values[0], 0, DSCP_MAX) : undefined;
    if (codepoint === undefined) return undefined;
    return () => ({
      change(packet) {
        packet.dscp = codepoint;
        return true;
      },
    });
  },
};
