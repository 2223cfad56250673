/** Rules 23 to 32: how messages become packets. */

import { judged, judgedAndActive, must, type RuleSection, should } from '../rule.js';

export const REQUEST_RULES: RuleSection = {
  title: 'Request sequences and lengths',
  rules: [
    must(
      23,
      'Packets of a message come as FIRST, MIDDLE, LAST, or as ONLY, and messages do not mix.',
      '9.7.4',
      judged('requests of RC and UC that are sent for the first time, where no PSN is missing before'),
    ),
    must(
      24,
      'A responder refuses a wrong sequence by NAK 0x61.',
      'rxe check_op_seq, class C',
      judgedAndActive('answers to a request that breaks rule 23, as long as nothing was sent in its place'),
    ),
    must(
      25,
      'FIRST and MIDDLE carry exactly a path MTU.',
      'C9-92',
      judgedAndActive('their payload is 256, 512, 1024, 2048 or 4096 bytes; that it is the connection’s is rule 32'),
    ),
    must(26, 'LAST carries 1 byte to the path MTU.', 'C9-92', judgedAndActive('requests; a READ response is rule 62')),
    must(27, 'ONLY carries at most the path MTU.', 'C9-92', judgedAndActive('requests')),
    must(28, 'A RETH asks for at most 2^31 bytes.', 'C9-94', judgedAndActive('every RETH')),
    must(
      29,
      'A WRITE carries as many bytes as its RETH says.',
      'C9-92 ff.',
      judgedAndActive('each WRITE whose packets were all captured'),
    ),
    must(
      30,
      'Opcodes are those of the table, with their extension headers and no others.',
      '9.4',
      judged('packets too short for their headers, payload where none belongs, reserved opcodes'),
    ),
    should(31, 'Solicited Event is set only on LAST and ONLY.', '9.2', judged('FIRST and MIDDLE')),
    must(
      32,
      'A sender keeps to the path MTU of the connection.',
      '9.7',
      judged('FIRST and MIDDLE against the MTU of the CM REQ, or against the first one seen'),
    ),
  ],
};
