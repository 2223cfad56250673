import { describe, expect, it } from 'vitest';
import { parseSettings } from '../src/lab/settings.js';

describe('settings of the lab', () => {
  it('are some or all of operation, scheme and loss', () => {
    expect(parseSettings({})).toEqual({});
    expect(parseSettings({ scheme: 'go-back-n' })).toEqual({ scheme: 'go-back-n' });
    const all = { op: 'read', scheme: 'selective-repeat', loss: 'random=0.01', link: 'slow', cc: 'dcqcn' };
    expect(parseSettings(all)).toEqual(all);
  });

  it.each([
    [{ scheme: 'go-back-1' }, /^scheme: it is one of go-back-0, go-back-n, selective-repeat/],
    [{ op: 'atomic' }, /^op: it is one of send, write, read/],
    [{ loss: 'every=2' }, /^loss: it is one of none, ip-id-lsb=0xff, random=0.001, random=0.01/],
    [{ link: 'dial-up' }, /^link: it is one of fast, slow, slow-pfc/],
    [{ cc: 'reno' }, /^cc: it is one of none, fixed, dcqcn, /],
    [{ speed: 3 }, /speed/],
    [{ op: ['read'] }, /^op/],
    [null, /object/],
    ['read', /object/],
  ])('refuses %j and says why', (settings, message) => {
    expect(() => parseSettings(settings)).toThrow(message);
    expect(() => parseSettings(settings)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_MALFORMED' }));
  });
});
