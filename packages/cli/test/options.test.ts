import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  addressOption,
  choiceOption,
  countOption,
  durationOption,
  messageSizeOption,
  mtuOption,
  portOption,
  positiveDurationOption,
  qpnOption,
  rateOption,
  sizeOption,
} from '../../command/src/options.js';

describe('option values', () => {
  it('arrive in the units of the program', () => {
    expect(sizeOption('64KiB')).toBe(65536);
    expect(rateOption('25Gbps')).toBe(25e9);
    expect(durationOption('67us')).toBe(67_000);
    expect(countOption('1000')).toBe(1000);
    expect(portOption('18515')).toBe(18515);
    expect(qpnOption('0x11')).toBe(17);
    expect(mtuOption('4096')).toBe(4096);
    expect(addressOption('::1').family).toBe(6);
    expect(choiceOption(['go-back-0', 'go-back-n'])('go-back-n')).toBe('go-back-n');
  });

  it.each([
    [sizeOption, 'big', /'big' is not a size \(write for example 4096, 64KiB/],
    [rateOption, '25', /'25' is not a rate/],
    [durationOption, '5', /'5' is not a time/],
    [messageSizeOption, '3GiB', /a message can have at most 2GiB\./],
    [messageSizeOption, 'big', /'big' is not a size/],
    [positiveDurationOption, '0s', /the time must be above 0\./],
    [countOption, '0', /'0' is not a whole number from 1 up/],
    [portOption, '65536', /from 1 to 65535/],
    [qpnOption, '0x1000000', /from 0 to 16777215/],
    [mtuOption, '1500', /one of 256, 512, 1024, 2048, 4096/],
    [mtuOption, 'jumbo', /'jumbo' is not a whole number/],
    [addressOption, 'localhost', /'localhost' is not an IP address \(give a literal address/],
    [choiceOption(['read', 'write']), 'wriet', /one of read, write/],
  ] as const)('%# a wrong one is refused with what is allowed', (parse, text, message) => {
    expect(() => parse(text)).toThrow(InvalidArgumentError);
    expect(() => parse(text)).toThrow(message);
  });
});
