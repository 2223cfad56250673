/** Rules 61 to 82: READs, atomics, errors. Rules 112 to 115: memory placement. */

import { active, information, judged, judgedAndActive, measured, must, type RuleSection, should } from '../rule.js';

export const READ_RULES: RuleSection = {
  title: 'READ',
  rules: [
    must(
      61,
      'READ responses have the PSNs of their request, and FIRST, MIDDLE, LAST or ONLY by their place.',
      '9.7.5.1',
      judged(
        'each response against its request and those that asked for a part again; an answer may end where a newer request begins',
      ),
    ),
    must(
      62,
      'READ responses carry the path MTU, the last one the rest.',
      'C9-92',
      judged('each response against the length of its request'),
    ),
    must(
      63,
      'A READ that is asked for again has address and length moved on to match its PSN.',
      'Lumina read_gbn_check',
      judgedAndActive('RETH of each request inside an earlier READ'),
    ),
    information(
      64,
      'Responses to such a READ begin with FIRST or with MIDDLE.',
      'docs/how-to/talk-to-linux.md',
      measured('the first response to a request inside an earlier READ', true),
    ),
    must(
      65,
      'A duplicate READ is executed again, for its range or a part of it.',
      'rxe duplicate_request',
      active('memory has to be compared'),
    ),
    must(
      66,
      'No more READs and atomics are outstanding than the responder takes.',
      '9.7.4.1',
      judgedAndActive('where CM has told the limit; proven by an answer that comes after one request too many'),
    ),
    should(67, 'One READ too many is refused by NAK 0x61.', 'rxe', active('a tester has to send it')),
    must(
      68,
      'The R_Key of a READ or WRITE of no bytes is not checked.',
      'C9-88',
      judgedAndActive(
        'NAK 0x62 for a request of no bytes; a violation needs one of the same kind with bytes that was acknowledged before, since a queue pair may allow none',
      ),
    ),
    should(69, 'A READ of 2^31 bytes is answered or refused.', 'C9-94', active('a tester has to send it')),
  ],
};

export const ATOMIC_RULES: RuleSection = {
  title: 'Atomics',
  rules: [
    must(
      70,
      'A duplicate atomic gets the first result again.',
      'class D, rxe resources',
      active('the answer has to be lost'),
    ),
    must(
      71,
      'A duplicate beyond what is remembered is dropped.',
      'class D',
      active('old requests have to be sent again'),
    ),
    must(72, 'An unaligned atomic is refused by NAK 0x61.', 'rxe', active('a tester has to send it')),
    must(73, 'Atomics are atomic, and big-endian on the wire.', '9.4.5', active('memory has to be compared')),
  ],
};

export const PLACEMENT_RULES: RuleSection = {
  title: 'FLUSH and ATOMIC WRITE',
  rules: [
    must(
      112,
      'An ATOMIC WRITE carries 8 bytes to a multiple of 8, and its RETH says so.',
      'A19',
      judgedAndActive('every ATOMIC WRITE'),
    ),
    must(113, 'A FETH has a placement type, a selectivity level, and no other bits.', 'A19', judged('every FETH')),
    must(
      114,
      'A duplicate FLUSH or ATOMIC WRITE is answered again and not executed again.',
      'A19, rxe resources',
      active('the answer has to be lost'),
    ),
    must(
      115,
      'FLUSH needs its access right and a range inside the region, except for a whole region.',
      'A19, rxe check_rkey',
      active('memory without the right has to be known'),
    ),
  ],
};

export const ERROR_RULES: RuleSection = {
  title: 'Errors',
  rules: [
    must(
      74,
      'Wrong key, range, right or domain: NAK 0x62, and nothing is written.',
      'class C',
      active('memory has to be compared'),
    ),
    must(
      75,
      'An operation that the queue pair does not allow: NAK 0x61.',
      'rxe check_op_valid',
      active('how the peer was set up has to be known'),
    ),
    must(
      76,
      'A SEND longer than its receive: NAK 0x61.',
      'docs/how-to/talk-to-linux.md',
      active('how long the receive is has to be known'),
    ),
    must(77, 'A WRITE takes a receive only with immediate data.', 'C10-87', active('completions have to be counted')),
    must(78, 'Immediate data are delivered once.', '9.4', active('completions have to be counted')),
    must(79, 'After SEND with invalidate the key is dead.', 'rxe class J', active('the key has to be used again')),
    must(
      80,
      'After a fatal NAK there are no more answers.',
      '9.9.3',
      judgedAndActive('answers to that PSN or a later one'),
    ),
    should(
      81,
      'A fatal NAK leaves after the answers owed before it.',
      '9.7.5',
      judgedAndActive('READ responses and atomic answers behind the NAK; a violation needs --at'),
    ),
    must(82, 'NAK codes and AETH types are those of the table; 0x64 is not for RC.', '9.7.5.2', judged('every AETH')),
  ],
};
