import { describe, expect, it } from 'vitest';
import { COUNTER } from '../../src/memory/ring/counters.js';
import { connectQp } from '../support/pair.js';
import { describeFuzz } from './describe-fuzz.js';
import { fuzzNic } from './fuzz-nic.js';
import { MTU, PEERS } from './victim.js';

describeFuzz(1, 1, 5_000);

describe('a NIC under hostile datagrams', () => {
  it('is reached in depth: every kind of request is executed and every kind of refusal given', async () => {
    const { counters, emitted, broken } = await fuzzNic(3, 8_000);

    expect(emitted).toBeGreaterThan(1000);
    expect(broken).toBeGreaterThan(10);
    for (const name of [
      'rx_accepted',
      'rx_drop_parse',
      'rx_drop_no_qp',
      'rx_drop_qp_type',
      'rx_drop_qp_state',
      'rx_drop_address',
      'rx_drop_source_port',
      'rx_drop_pkey',
      'rx_drop_qkey',
      'rx_icrc_errors',
      'rx_write_requests',
      'rx_read_requests',
      'rx_atomic_requests',
      'rx_send_messages',
      'out_of_sequence',
      'duplicate_request',
      'packet_seq_err',
      'rnr_nak_received',
      'read_response_gaps',
      'req_remote_access_errors',
      'resp_nak_fatal',
      'sack_sent',
      'reorder_stored',
      'stale_response',
      'unsent_response',
      'reorder_conflicts',
      'uc_messages_dropped',
      'local_ack_timeout_err',
      'np_cnp_sent',
      'rp_cnp_handled',
      'rp_cnp_ignored',
      'rp_cnp_suspicious',
    ] as const) {
      expect(counters[name], name).toBeGreaterThan(0);
    }
  });

  it('is the same NIC again for the same seed', async () => {
    expect(await fuzzNic(4, 1000)).toEqual(await fuzzNic(4, 1000));
  });
});

describe('the fuzz run notices', () => {
  it('a byte changed in memory that is open to nobody', async () => {
    const { failures } = await fuzzNic(1, 200, ({ regions }) => (regions.readOnly.bytes[5] ^= 1));
    expect(failures).toEqual([expect.stringMatching(/^byte \d+ of memory that nobody may write was changed$/)]);
  });

  it('a datagram that is not counted', async () => {
    const { failures } = await fuzzNic(1, 200, ({ host }) => host.counters[COUNTER.rx_drop_parse]--);
    expect(failures.join()).toMatch(/is not accepted/);
  });

  it('an exception', async () => {
    const { failures } = await fuzzNic(1, 200, ({ host }) => {
      host.receive = () => {
        throw new RangeError('out of bounds');
      };
    });
    expect(failures[0]).toMatch(/^datagram 0 \([0-9a-f]*\) threw RangeError: out of bounds$/);
  });

  it('a packet to a QP that nobody is connected to', async () => {
    const { failures } = await fuzzNic(1, 200, async ({ targets }) => {
      const { pd, device } = targets[0].qp;
      const stray = await pd.createQp({ sendCq: await device.createCq(1) });
      const peer = { address: PEERS[0], qpn: 0x9999, psn: 0 };
      await connectQp(stray, peer, { psn: 0, mtu: MTU, recovery: 'go-back-n' });
      stray.postSend({ opcode: 'SEND', inline: new Uint8Array(1) });
    });
    expect(failures).toEqual(['emitted a packet to the unknown QP 0x9999']);
  });

  it('a packet to another address than the peer’s', async () => {
    const { failures } = await fuzzNic(1, 200, async ({ targets }) => {
      const { pd, device } = targets[0].qp;
      const stray = await pd.createQp({ sendCq: await device.createCq(1) });
      const peer = { address: PEERS[1], qpn: targets[0].destQpn, psn: 0 };
      await connectQp(stray, peer, { psn: 0, mtu: MTU, recovery: 'go-back-n' });
      stray.postSend({ opcode: 'SEND', inline: new Uint8Array(1) });
    });
    expect(failures).toEqual(['emitted a packet to 192.0.2.3']);
  });
});
