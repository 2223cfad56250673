import { describe, expect, it } from 'vitest';
import { PfcFrame } from '../../../../src/packet/pfc.js';
import { PauseSender } from '../../src/switch/pause-sender.js';

/** What the frames of two ports tell; pauses last 1000 ns. */
function newSender() {
  const pendingPorts: number[] = [];
  const sender = new PauseSender(500, [1000, 1000], (port) => pendingPorts.push(port));
  const told = (port: number, nowNs: number): readonly [enabled: number, ...quanta: number[]] | undefined => {
    if (sender.pending[port] === 0) return undefined;
    const frame = new PfcFrame();
    sender.fill(port, frame, nowNs);
    return [frame.enabled, ...frame.quanta.slice(3, 5)];
  };
  return { sender, told, pendingPorts };
}

describe('pause sender', () => {
  it('tells each change once, and with it all pauses of the port anew', () => {
    const { sender, told, pendingPorts } = newSender();
    sender.xoff(1, 3);
    expect(told(1, 0)).toEqual([0b0_1000, 500, 0]);
    expect([told(1, 0), told(0, 0)]).toEqual([undefined, undefined]);
    sender.xoff(1, 4);
    expect(told(1, 400)).toEqual([0b1_1000, 500, 500]);
    expect(sender.nextRefreshNs).toBeLessThanOrEqual(900);
    sender.xon(1, 3);
    expect(told(1, 450)).toEqual([0b1_1000, 0, 500]);
    expect(pendingPorts).toEqual([1, 1, 1]);
  });

  it('repeats at half the time while anything is paused', () => {
    const { sender, told } = newSender();
    sender.xoff(0, 3);
    told(0, 0);
    sender.refresh(499);
    expect(told(0, 499)).toBeUndefined();
    sender.refresh(500);
    expect(told(0, 510)).toEqual([0b0_1000, 500, 0]);
    sender.xon(0, 3);
    told(0, 600);
    sender.refresh(5000);
    expect(told(0, 5000)).toBeUndefined();
    expect(sender.nextRefreshNs).toBe(Number.POSITIVE_INFINITY);
  });

  it('says nothing of a silenced priority, not even beside another, until it may again', () => {
    const { sender, told } = newSender();
    sender.xoff(0, 3);
    sender.silence(0, 3);
    expect(told(0, 0)).toBeUndefined();
    sender.xoff(0, 4);
    expect(told(0, 0)).toEqual([0b1_0000, 500, 500]);
    sender.listen(0, 3);
    expect(told(0, 10)).toEqual([0b1_1000, 500, 500]);
  });
});
