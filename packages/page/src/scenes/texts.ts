/** All texts of the page. `{name}` is replaced by a number or a name. */

import { filled, LADDER_TEXTS, type LadderTexts, TRANSFER_TITLES } from '@rocev2/command/plot';
import { OVERVIEW_TEXTS } from '@rocev2/inspect/internal/page';

export const TEXTS = {
  title: { en: 'RDMA networks, simulated in this page', zh: '在本页中仿真 RDMA 网络' },
  scenes: { en: 'Scenes', zh: '场景' },
  documents: { en: 'Documents', zh: '文档' },
  language: { en: '中文', zh: 'English' },
  theme: { en: 'Light or dark', zh: '浅色 / 深色' },
  settings: { en: 'Settings', zh: '设置' },
  seed: { en: 'Seed', zh: '随机种子' },
  'seed.hint': { en: 'Another seed gives other random numbers.', zh: '不同的种子产生不同的随机数。' },
  copyLink: { en: 'Copy link', zh: '复制链接' },
  copied: { en: 'Copied', zh: '已复制' },
  reset: { en: 'Reset', zh: '重置' },
  running: { en: 'Simulating {name}: {share} %', zh: '正在仿真 {name}：{share} %' },
  failed: { en: 'The simulation failed: {message}', zh: '仿真失败：{message}' },
  hash: { en: 'trace hash {hash}', zh: '轨迹哈希 {hash}' },
  'hash.hint': {
    en: 'The same seed and settings give the same packets, also in Node.js.',
    zh: '相同的种子和设置产生相同的报文，在 Node.js 中也一样。',
  },
  results: { en: 'Results', zh: '结果' },
  overTime: { en: 'Over time', zh: '随时间变化' },
  packets: { en: 'Packets', zh: '报文' },
  variant: { en: 'Run', zh: '运行' },
  time: { en: 'Virtual time', zh: '虚拟时间' },
  'chart.time': { en: 'time', zh: '时间' },
  play: { en: 'Play', zh: '播放' },
  pause: { en: 'Pause', zh: '暂停' },
  slower: { en: 'Speed', zh: '速度' },
  perSecond: { en: '{time} of virtual time a second', zh: '每秒 {time} 虚拟时间' },
  back: { en: 'Previous packet', zh: '上一个报文' },
  forward: { en: 'Next packet', zh: '下一个报文' },
  toLoss: { en: 'Next loss', zh: '下一次丢包' },
  sender: { en: 'sender', zh: '发送端' },
  receiver: { en: 'receiver', zh: '接收端' },
  switch: { en: 'switch', zh: '交换机' },
  stage: { en: 'packets between sender and receiver', zh: '发送端与接收端之间的报文' },
  'ladder.none': { en: LADDER_TEXTS.none, zh: '这段时间内没有报文。' },
  'ladder.choose': { en: LADDER_TEXTS.choose, zh: '选择一个报文查看详情。' },
  'ladder.first': { en: LADDER_TEXTS.first, zh: '这段时间内共 {count} 个报文，显示前 {shown} 个。' },
  'ladder.later': { en: LADDER_TEXTS.later, zh: '{time} 之后' },
  'ladder.list': { en: LADDER_TEXTS.list, zh: '按时间排列的报文' },
  'ladder.ladder': { en: LADDER_TEXTS.ladder, zh: '报文梯形图' },
  'ladder.packet': { en: LADDER_TEXTS.packet, zh: '报文 {number}：{operation}' },
  'ladder.place': { en: LADDER_TEXTS.place, zh: '连接中第 {place} 个（PSN {psn}）' },
  'ladder.at': { en: LADDER_TEXTS.at, zh: '{way}，时间 {time}' },
  'ladder.took': { en: LADDER_TEXTS.took, zh: '{time} 后到达' },
  'ladder.data': { en: LADDER_TEXTS.data, zh: '新数据' },
  'ladder.repeated': { en: LADDER_TEXTS.repeated, zh: '重传' },
  'ladder.request': { en: LADDER_TEXTS.request, zh: 'READ 请求' },
  'ladder.ack': { en: LADDER_TEXTS.ack, zh: 'ACK' },
  'ladder.nak': { en: LADDER_TEXTS.nak, zh: 'NAK' },
  'ladder.cnp': { en: LADDER_TEXTS.cnp, zh: 'CNP' },
  'ladder.dropped': { en: LADDER_TEXTS.dropped, zh: '丢失' },
  livelock: { en: 'Livelock', zh: '活锁' },
  'livelock.idea': {
    en: 'A lossy link can be fully busy and deliver nothing.',
    zh: '有丢包的链路可能一直满载，却什么也没有送达。',
  },
  'livelock.schemes': { en: 'Recovery schemes', zh: '丢包恢复方案' },
  'livelock.schemes.hint': {
    en: 'What the sender retransmits after a loss.',
    zh: '丢包之后发送端重传什么。',
  },
  'livelock.loss': { en: 'Loss', zh: '丢包率' },
  'livelock.loss.hint': {
    en: 'The share of packets that the switch drops. 1/256 drops every 256th packet.',
    zh: '交换机丢弃的报文比例。1/256 表示每 256 个报文丢弃一个。',
  },
  'livelock.message': { en: 'Message size', zh: '消息大小' },
  'livelock.message.hint': {
    en: 'A message is one RDMA WRITE. It is divided into packets of 1,024 bytes.',
    zh: '一条消息是一次 RDMA WRITE，被分成 1024 字节的报文。',
  },
  'livelock.goodput': { en: 'Goodput: completed messages', zh: '有效吞吐：已完成的消息' },
  'livelock.link': { en: 'Link: all packets of the sender', zh: '链路：发送端的全部报文' },
  'livelock.stuck': { en: TRANSFER_TITLES.livelock, zh: '活锁：链路满载，却没有消息送达' },
  'livelock.stuck.text': {
    en: '{scheme} restarts a message at its first packet after each loss. A message has {packets} packets, and the switch drops {loss} of them, so a loss comes before each message is complete.',
    zh: '每次丢包后，{scheme} 都从消息的第一个报文重新开始。一条消息有 {packets} 个报文，交换机丢弃其中的 {loss}，所以每条消息在完成之前都会再次丢包。',
  },
  'livelock.part': { en: 'Part of the traffic is wasted', zh: '一部分流量被浪费' },
  'livelock.part.text': {
    en: 'With {scheme}, {share} % of the traffic completes messages. The rest are retransmitted packets, many of which had already arrived.',
    zh: '{scheme} 发送的流量中只有 {share} % 用于完成消息，其余是重传的报文，其中许多其实已经到达。',
  },
  'livelock.good': { en: 'Messages arrive', zh: '消息正常送达' },
  'livelock.good.text': {
    en: 'With every scheme shown, at least {share} % of the traffic completes messages: few packets are lost, or only those are retransmitted.',
    zh: '所示方案发送的流量中至少有 {share} % 用于完成消息，因为丢包很少，或者只重传丢失的报文。',
  },
  recovery: { en: 'Cost of recovery', zh: '恢复的代价' },
  'recovery.idea': {
    en: 'Go-back-N pays for each loss with all packets in flight; selective repeat pays with one.',
    zh: '每次丢包，go-back-N 要重传所有在途报文，选择性重传只重传一个。',
  },
  'recovery.schemes': { en: 'Recovery schemes', zh: '丢包恢复方案' },
  'recovery.schemes.hint': { en: 'What the sender retransmits after a loss.', zh: '丢包之后发送端重传什么。' },
  'recovery.delay': { en: 'Delay of each link', zh: '每条链路的时延' },
  'recovery.delay.hint': {
    en: 'There are two links each way. More delay means more packets in flight.',
    zh: '每个方向有两条链路。时延越大，在途报文越多。',
  },
  'recovery.simulated': { en: 'Useful packets, simulated', zh: '有用报文比例：仿真' },
  'recovery.closedForm': { en: 'Useful packets, closed form', zh: '有用报文比例：公式' },
  'recovery.curve': {
    en: 'Useful packets over the loss: lines in closed form, points simulated',
    zh: '有用报文比例与丢包率：线为公式，点为仿真',
  },
  'recovery.loss': { en: 'loss', zh: '丢包率' },
  'recovery.costly': { en: 'Recovery wastes part of the link', zh: '恢复浪费了一部分链路' },
  'recovery.costly.text': {
    en: 'Of the packets of {name}, {share} % are useful. About {pipeline} packets leave before the sender learns of a loss, and go-back-N retransmits them all.',
    zh: '{name} 的报文中只有 {share} % 有用。发送端得知丢包之前已经又发出约 {pipeline} 个报文，go-back-N 会全部重传。',
  },
  'recovery.cheap': { en: 'Recovery costs little', zh: '恢复代价很小' },
  'recovery.cheap.text': {
    en: 'At least {share} % of the packets are useful ({name}): about {pipeline} packets are in flight when a loss is noticed, and few are retransmitted.',
    zh: '至少 {share} % 的报文有用（{name}）：发现丢包时约有 {pipeline} 个报文在途，重传的很少。',
  },
  window: { en: 'Window protocol', zh: '窗口协议' },
  'window.idea': {
    en: 'A sender that asks for memory before each block waits a round trip. A pool that is described once needs no requests.',
    zh: '每写一块之前都先请求内存，就要多等一个往返时延。内存池只需描述一次，之后不必请求。',
  },
  'window.delay': { en: 'Delay of each link', zh: '每条链路的时延' },
  'window.delay.hint': {
    en: 'There are two links each way. A request and its answer take about four of them.',
    zh: '每个方向有两条链路。一次请求加应答大约需要四段链路时延。',
  },
  'window.block': { en: 'Block size', zh: '块大小' },
  'window.block.hint': {
    en: 'Each block is one RDMA WRITE with immediate data, which names the block.',
    zh: '每块是一次带立即数的 RDMA WRITE，立即数是块号。',
  },
  'window.blocks': { en: 'Blocks in the pool', zh: '内存池的块数' },
  'window.blocks.hint': {
    en: 'baseline: a request per block. nodelay: an acknowledgement per block. nagle: one for half of the pool.',
    zh: 'baseline：每块一次请求。nodelay：每块一次确认。nagle：池中一半的块确认一次。',
  },
  'window.goodput': { en: 'Goodput: blocks at the receiver', zh: '有效吞吐：接收端收到的块' },
  'window.messages': { en: 'Control messages per block', zh: '每块的控制消息数' },
  'window.waiting': { en: 'A request per block leaves the link idle', zh: '每块请求一次使链路空闲' },
  'window.waiting.text': {
    en: 'A block takes {block} us on the link. The request for it and the acknowledgement of its WRITE add {wait} us, so the baseline uses {share} % of the link. With the pool, blocks are sent during these round trips: {policy} uses {best} %. nagle needs {messages} control messages per block, the baseline 2.',
    zh: '一块在链路上需要 {block} us。请求它和等待 WRITE 的确认又需要 {wait} us，所以 baseline 只用了链路的 {share} %。使用内存池时，往返期间继续发送：{policy} 用了 {best} %。nagle 每块需要 {messages} 条控制消息，baseline 需要 2 条。',
  },
  'window.small': { en: 'The pool is too small for this delay', zh: '对该时延来说内存池太小' },
  'window.small.text': {
    en: 'The {blocks} blocks hold {pool} KB. About {flight} KB fit into a round trip, and acknowledgements arrive later still, so the sender waits for free blocks. {policy} uses {best} % of the link, the baseline {share} %.',
    zh: '{blocks} 块共 {pool} KB。一个往返时延内可以发送约 {flight} KB，而确认来得更晚，所以发送端要等空闲块。{policy} 用了链路的 {best} %，baseline 用了 {share} %。',
  },
  'window.even': { en: 'Blocks are large enough to hide the requests', zh: '块足够大，请求的代价可以忽略' },
  'window.even.text': {
    en: 'A block takes {block} us on the link, and its request and acknowledgement add only {wait} us. The baseline uses {share} % of the link, {policy} {best} %.',
    zh: '一块在链路上需要 {block} us，请求和确认只多出 {wait} us。baseline 用了链路的 {share} %，{policy} 用了 {best} %。',
  },
  dcqcn: { en: 'DCQCN and TIMELY', zh: 'DCQCN 与 TIMELY' },
  'dcqcn.idea': {
    en: 'Senders reduce their rates after notifications of marked packets (DCQCN), or when the round-trip time grows (TIMELY). A fluid model predicts whether this settles.',
    zh: '发送端在收到标记通知时（DCQCN），或在往返时延增大时（TIMELY）降低速率。流体模型可以预测它是否稳定。',
  },
  'dcqcn.control': { en: 'Rate control', zh: '速率控制' },
  'dcqcn.control.hint': {
    en: 'dcqcn at 40 Gb/s for 20 ms. timely and patched-timely at 10 Gb/s for 100 ms, with the parameters of their papers.',
    zh: 'dcqcn：40 Gb/s，20 ms。timely 和 patched-timely：10 Gb/s，100 ms，使用论文中的参数。',
  },
  'dcqcn.flows': { en: 'Flows', zh: '流数' },
  'dcqcn.flows.hint': {
    en: 'All send to one host. With dcqcn they begin at 40 Gb/s, with timely at fair shares.',
    zh: '都发往同一台主机。dcqcn 的初始速率为 40 Gb/s，timely 从公平份额开始。',
  },
  'dcqcn.delay': { en: 'Delay of each link', zh: '每条链路的时延' },
  'dcqcn.delay.hint': {
    en: 'A mark or a round-trip time reaches the sender after about four of them.',
    zh: '标记或往返时延的变化大约经过四段链路时延才到达发送端。',
  },
  'dcqcn.ramp': { en: 'Every packet is marked above', zh: '队列超过该值时标记所有报文' },
  'dcqcn.ramp.hint': {
    en: 'Kmax of RED, for dcqcn. Marking begins at 5 KB, with nearly the same slope in both cases.',
    zh: 'RED 的 Kmax，只用于 dcqcn。标记从 5 KB 开始，两种情况斜率几乎相同。',
  },
  'dcqcn.queue': { en: 'Queue, packets', zh: '队列：报文仿真' },
  'dcqcn.modelQueue': { en: 'Queue, fluid model', zh: '队列：流体模型' },
  'dcqcn.rate': { en: 'Mean rate of a flow, packets', zh: '流的平均速率：报文仿真' },
  'dcqcn.modelRate': { en: 'Rate of a flow, fluid model', zh: '流的速率：流体模型' },
  'dcqcn.margin': {
    en: 'Phase margin of the model in degrees: stable above 0',
    zh: '模型的相位裕度（度）：大于 0 时稳定',
  },
  'dcqcn.marginName': { en: 'phase margin', zh: '相位裕度' },
  'dcqcn.moving': { en: 'TIMELY has no fixed point', zh: 'TIMELY 没有不动点' },
  'dcqcn.moving.text': {
    en: 'Between its thresholds TIMELY follows only the change of the delay. Where the delay is constant it still raises the rates, so queue and rates keep moving. With {flows} flows the mean queue is {queue} KB, {modelQueue} KB in the model.',
    zh: '在两个阈值之间，TIMELY 只跟随时延的变化。时延不变时它仍然提高速率，所以队列和速率一直在变化。{flows} 条流时平均队列为 {queue} KB，模型中为 {modelQueue} KB。',
  },
  'dcqcn.stable': { en: 'The model is stable', zh: '模型稳定' },
  'dcqcn.stable.text': {
    en: 'With {flows} flows the phase margin is {margin} degrees, so disturbances fade. The mean queue is {queue} KB, {modelQueue} KB in the model. The margin is not monotonic: it is least, {worst} degrees, with {worstFlows} flows.',
    zh: '{flows} 条流时相位裕度为 {margin} 度，扰动会衰减。平均队列为 {queue} KB，模型中为 {modelQueue} KB。裕度不是单调的：{worstFlows} 条流时最小，为 {worst} 度。',
  },
  'dcqcn.unstable': { en: 'The model is unstable: queue and rates oscillate', zh: '模型不稳定：队列和速率振荡' },
  'dcqcn.unstable.text': {
    en: 'With {flows} flows the phase margin is {margin} degrees: feedback comes too late, and senders react too much. The mean queue is {queue} KB, {modelQueue} KB in the model. The least margin is {worst} degrees, with {worstFlows} flows.',
    zh: '{flows} 条流时相位裕度为 {margin} 度：反馈到得太晚，发送端反应过度。平均队列为 {queue} KB，模型中为 {modelQueue} KB。裕度最小为 {worst} 度，出现在 {worstFlows} 条流时。',
  },
  incast: { en: 'Incast and PFC', zh: 'Incast 与 PFC' },
  'incast.idea': {
    en: 'Many senders to one receiver overflow its queue. Pause frames prevent the loss.',
    zh: '多个发送端同时发往一个接收端会使队列溢出。暂停帧可以避免丢包。',
  },
  'incast.senders': { en: 'Senders', zh: '发送端数' },
  'incast.senders.hint': {
    en: 'Each has a link of 40 Gb/s, as the receiver has.',
    zh: '每个发送端和接收端的链路都是 40 Gb/s。',
  },
  'incast.recovery': { en: 'Recovery scheme', zh: '丢包恢复方案' },
  'incast.recovery.hint': { en: 'What senders retransmit after a loss.', zh: '丢包之后发送端重传什么。' },
  'incast.pfc': { en: 'Priority flow control', zh: '优先级流控' },
  'incast.pfc.hint': {
    en: 'With PFC the switch pauses its neighbours before a queue is full.',
    zh: '启用 PFC 时，交换机在队列满之前暂停邻居。',
  },
  'incast.goodput': { en: 'Goodput: completed messages', zh: '有效吞吐：已完成的消息' },
  'incast.sent': { en: 'Link to the receiver: all packets', zh: '通往接收端的链路：全部报文' },
  'incast.queue': { en: 'Queue to the receiver', zh: '通往接收端的队列' },
  'incast.lossy': { en: 'Without PFC the queue overflows', zh: '没有 PFC 时队列溢出' },
  'incast.lossy.text': {
    en: '{senders} senders fill the buffer, and the switch drops {lost} packets. With {scheme}, {share} % of the traffic on the link to the receiver completes messages. With PFC nothing is lost, after {pauses} pause frames.',
    zh: '{senders} 个发送端填满缓冲区，交换机丢弃 {lost} 个报文。使用 {scheme} 时，通往接收端的链路上只有 {share} % 的流量用于完成消息。启用 PFC 时没有丢包，发送了 {pauses} 个暂停帧。',
  },
  'incast.paused': { en: 'Nothing is lost', zh: '没有丢包' },
  'incast.paused.text': {
    en: '{senders} senders share the link to the receiver, and {pauses} pause frames keep the queue below the buffer size.',
    zh: '{senders} 个发送端共享通往接收端的链路，{pauses} 个暂停帧使队列保持在缓冲区大小以内。',
  },
  storm: { en: 'Pause storm', zh: '暂停风暴' },
  'storm.idea': {
    en: 'One broken host that sends pause frames stops traffic that is not for it.',
    zh: '一台不断发送暂停帧的故障主机会阻塞与它无关的流量。',
  },
  'storm.runs': { en: 'Runs', zh: '运行' },
  'storm.runs.hint': {
    en: 'Without a storm, with one from 2 ms on, and with a watchdog in each switch.',
    zh: '没有风暴、从 2 ms 开始的风暴、以及每台交换机都有看门狗的情况。',
  },
  'storm.detect': { en: 'The watchdog acts after', zh: '看门狗的检测时间' },
  'storm.detect.hint': {
    en: 'It drops packets for a port that was paused this long, and ignores its pauses.',
    zh: '端口被暂停这么久之后，看门狗丢弃发往该端口的报文，并忽略它的暂停帧。',
  },
  'storm.other': { en: 'Goodput to the other host', zh: '发往其他主机的有效吞吐' },
  'storm.broken': { en: 'Goodput to the broken host', zh: '发往故障主机的有效吞吐' },
  'storm.stopped': { en: 'The storm stops traffic to other hosts', zh: '风暴阻塞了发往其他主机的流量' },
  'storm.stopped.text': {
    en: 'The switch cannot send to the broken host, its buffer fills, and it pauses the link that all flows share: {pauses} pause frames. Traffic to the other host has {share} % of its link. A watchdog ends this after {detect}.',
    zh: '交换机无法向故障主机发送，缓冲区被填满，于是暂停所有流共享的链路：共 {pauses} 个暂停帧。发往其他主机的流量只有链路的 {share} %。看门狗在 {detect} 之后结束这种情况。',
  },
  'storm.free': { en: 'Other hosts keep their traffic', zh: '其他主机的流量不受影响' },
  'storm.free.text': {
    en: 'Traffic to the other host has at least {share} % of its link, with {pauses} pause frames. The watchdog drops packets for the broken host after {detect}, so that the buffer drains.',
    zh: '发往其他主机的流量至少有链路的 {share} %，共 {pauses} 个暂停帧。看门狗在 {detect} 之后丢弃发往故障主机的报文，使缓冲区排空。',
  },
  signals: { en: 'Marks or delay', zh: '标记还是时延' },
  'signals.idea': {
    en: 'Senders learn of congestion by marks (ECN) or by delay. They differ in queue, fairness and sensitivity to jitter.',
    zh: '发送端通过标记（ECN）或时延得知拥塞。两者在队列、公平性和对抖动的敏感度上不同。',
  },
  'signals.controls': { en: 'Rate controls', zh: '速率控制' },
  'signals.controls.hint': {
    en: 'dcqcn uses marks; timely, patched-timely and swift use round-trip times.',
    zh: 'dcqcn 使用标记；timely、patched-timely 和 swift 使用往返时延。',
  },
  'signals.flows': { en: 'Flows', zh: '流数' },
  'signals.flows.hint': { en: 'All send to one host at 40 Gb/s.', zh: '都发往同一台 40 Gb/s 的主机。' },
  'signals.jitter': { en: 'Jitter of the feedback', zh: '反馈的抖动' },
  'signals.jitter.hint': {
    en: 'Acknowledgements and notifications come later by 0 to twice this time.',
    zh: '确认和通知会晚到，晚 0 到两倍的该时间。',
  },
  'signals.queue': { en: 'Queue', zh: '队列' },
  'signals.slowest': { en: 'Slowest flow', zh: '最慢的流' },
  'signals.fastest': { en: 'Fastest flow', zh: '最快的流' },
  'signals.idle': { en: 'A control leaves the link idle', zh: '有的控制使链路空闲' },
  'signals.idle.text': {
    en: 'With {slow}, flows use {share} % of the link. Late feedback looks like a queue to controls that measure delay, so they reduce their rates. The jitter is {jitter}. With {fullest} the mean queue is longest, {queue} KB.',
    zh: '{slow} 的流只用了链路的 {share} %。对测量时延的控制来说，晚到的反馈看起来像排队，所以它们降低速率。抖动为 {jitter}。{fullest} 的平均队列最长，为 {queue} KB。',
  },
  'signals.unfair': { en: 'Flows do not share the link fairly', zh: '各流没有公平共享链路' },
  'signals.unfair.text': {
    en: 'With {unfair}, Jain’s index is {jain} (1 is fair). A control that follows only the change of the delay accepts any shares. With {fullest} the mean queue is longest, {queue} KB. The jitter is {jitter}.',
    zh: '{unfair} 的 Jain 指数为 {jain}（1 为完全公平）。只跟随时延变化的控制可以停在任意的份额上。{fullest} 的平均队列最长，为 {queue} KB。抖动为 {jitter}。',
  },
  'signals.fair': { en: 'Flows share the link', zh: '各流公平共享链路' },
  'signals.fair.text': {
    en: 'The least index of Jain is {jain}, with {unfair}. With {fullest} the mean queue is longest, {queue} KB. The jitter is {jitter}.',
    zh: 'Jain 指数最小为 {jain}（{unfair}）。{fullest} 的平均队列最长，为 {queue} KB。抖动为 {jitter}。',
  },
  own: { en: 'Your own scheme', zh: '自己的方案' },
  'own.idea': {
    en: 'Write a rate control or a recovery scheme, and compare it with built-in ones in the same network.',
    zh: '编写一个速率控制或丢包恢复方案，在同一网络中与内置方案比较。',
  },
  'own.kind': { en: 'Kind', zh: '类型' },
  'own.kind.hint': {
    en: 'Rate controls: four senders to one host. Recovery schemes: one sender, and 1 % of the packets is lost.',
    zh: '速率控制：四个发送端发往一台主机。恢复方案：一个发送端，丢包率 1 %。',
  },
  'own.code': { en: 'Code', zh: '代码' },
  'own.code.hint': {
    en: 'JavaScript, as in docs/extending.md. The link contains it, up to 4,000 characters.',
    zh: 'JavaScript，写法见 docs/extending.md。链接中包含代码，最多 4000 个字符。',
  },
  run: { en: 'Run', zh: '运行代码' },
  held: { en: 'This link contains code', zh: '此链接包含代码' },
  'held.text': {
    en: 'Read the code, and click Run if you trust it. It runs in a worker of this page without access to the network.',
    zh: '请先阅读代码，信任它再点击“运行代码”。代码在本页的 worker 中运行，不能访问网络。',
  },
  'own.goodput': { en: 'Goodput: completed messages', zh: '有效吞吐：已完成的消息' },
  'own.queue': { en: 'Queue', zh: '队列' },
  'own.more': { en: 'Your scheme delivers as much as the best', zh: '自己的方案与最好的内置方案相当' },
  'own.less': { en: 'A built-in scheme delivers more', zh: '有内置方案送达更多' },
  'own.text': {
    en: 'Your scheme delivers {own} Gb/s with a mean queue of {queue} KB; {best} delivers {other} Gb/s with {otherQueue} KB.',
    zh: '自己的方案送达 {own} Gb/s，平均队列 {queue} KB；{best} 送达 {other} Gb/s，平均队列 {otherQueue} KB。',
  },
  capture: { en: 'Your capture', zh: '你的抓包' },
  'capture.idea': {
    en: 'A capture of any NIC or switch: decoded, drawn and checked against the rules of RoCEv2. The file stays in this browser.',
    zh: '任何网卡或交换机的抓包：在这里解码、绘图，并按 RoCEv2 的规则检查。文件只留在本浏览器中。',
  },
  'capture.choose': {
    en: 'Choose a capture, or drop one here (pcap, pcapng)',
    zh: '选择抓包文件，或拖放到这里（pcap、pcapng）',
  },
  'capture.example': { en: 'Example', zh: '示例' },
  'capture.exampleName': {
    en: 'Simulated: a link that loses 2 % of the packets and damages 1 %, captured at the receiver',
    zh: '仿真：链路丢弃 2 % 的报文、损坏 1 %，在接收端抓包',
  },
  'capture.reading': { en: 'Reading {name}: {share} %', zh: '正在读取 {name}：{share} %' },
  'capture.failed': { en: 'The file cannot be read', zh: '无法读取该文件' },
  'capture.waiting': { en: 'No capture yet', zh: '还没有抓包' },
  'capture.waiting.text': {
    en: 'Choose a file that tcpdump, dumpcap or a switch has written, or start with the example.',
    zh: '选择 tcpdump、dumpcap 或交换机写的文件，或者先看示例。',
  },
  'capture.rules': { en: 'Rules', zh: '规则' },
  'capture.ladder': { en: 'One connection', zh: '一个连接' },
  'capture.connection': { en: 'Connection', zh: '连接' },
  'capture.table': { en: 'Packets', zh: '报文' },
  'capture.earlier': { en: 'Earlier packets', zh: '更早的报文' },
  'capture.later': { en: 'Later packets', zh: '更晚的报文' },
  'capture.shown': { en: '{from} to {to} of {count}', zh: '第 {from} 到 {to} 个，共 {count} 个' },
  'capture.findings': { en: 'Findings', zh: '发现' },
  'capture.more': { en: 'and {count} more', zh: '还有 {count} 个' },
  'capture.rule': { en: 'Rule', zh: '规则' },
  'capture.must': { en: 'must', zh: '必须' },
  'capture.should': { en: 'should', zh: '建议' },
  'capture.information': { en: 'information', zh: '信息' },
  'capture.level': { en: 'Level', zh: '级别' },
  'capture.verdict': { en: 'Verdict', zh: '结论' },
  'capture.passed': { en: 'Kept', zh: '遵守' },
  'capture.violations': { en: 'Broken', zh: '违反' },
  'capture.cannotTell': { en: 'Cannot tell', zh: '无法判断' },
  'capture.title': { en: 'Requirement', zh: '要求' },
  'capture.number': { en: 'No.', zh: '编号' },
  'capture.time': { en: 'Time (s)', zh: '时间（秒）' },
  'capture.source': { en: 'Source', zh: '源' },
  'capture.destination': { en: 'Destination', zh: '目的' },
  'capture.operation': { en: 'Operation', zh: '操作' },
  'capture.qpn': { en: 'QPN', zh: 'QPN' },
  'capture.psn': { en: 'PSN', zh: 'PSN' },
  'capture.flags': { en: 'Flags', zh: '标志' },
  'capture.bytes': { en: 'Bytes', zh: '字节' },
  'capture.icrc': { en: 'ICRC', zh: 'ICRC' },
  'capture.details': { en: 'Details', zh: '详情' },
  'capture.nothing': { en: OVERVIEW_TEXTS.nothing, zh: '文件中没有可检查的 RoCEv2 报文' },
  'capture.nothing.text': { en: OVERVIEW_TEXTS['nothing.text'], zh: '原因：{why}。' },
  'capture.broken': { en: OVERVIEW_TEXTS.broken, zh: '违反了必须遵守的规则：{rules}' },
  'capture.broken.text': {
    en: OVERVIEW_TEXTS['broken.text'],
    zh: '{packets} 个 RoCEv2 报文，{connections} 个双向可见的连接。遵守 {kept} 条规则，违反 {broken} 条。有 {open} 条规则的部分情况无法由抓包判断。',
  },
  'capture.advised': { en: OVERVIEW_TEXTS.advised, zh: '没有遵守建议性规则：{advised}' },
  'capture.advised.text': {
    en: OVERVIEW_TEXTS['advised.text'],
    zh: '{packets} 个 RoCEv2 报文，{connections} 个双向可见的连接。遵守 {kept} 条规则。有 {open} 条规则的部分情况无法由抓包判断。',
  },
  'capture.kept': { en: OVERVIEW_TEXTS.kept, zh: '没有违反规则' },
  'capture.kept.text': {
    en: OVERVIEW_TEXTS['kept.text'],
    zh: '{packets} 个 RoCEv2 报文，{connections} 个双向可见的连接。遵守 {kept} 条规则。有 {open} 条规则的部分情况无法由抓包判断。',
  },
} as const;

/** Names of values and runs that are words, not names of the product. */
const NAMES_IN_CHINESE: Readonly<Record<string, string>> = {
  none: '没有风暴',
  'no storm': '没有风暴',
  storm: '风暴',
  watchdog: '看门狗',
  'storm, watchdog': '风暴，有看门狗',
  PFC: '有 PFC',
  'no PFC': '无 PFC',
  'rate control': '速率控制',
  'recovery scheme': '恢复方案',
  own: '自己的方案',
};

export type TextKey = keyof typeof TEXTS;
export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

export function textIn(language: Language, key: TextKey, numbers: Readonly<Record<string, string>> = {}): string {
  return filled(TEXTS[key][language], numbers);
}

/** The name of a value or a run. */
export function nameIn(language: Language, name: string): string {
  return language === 'zh' ? (NAMES_IN_CHINESE[name] ?? name) : name;
}

export function ladderTextsIn(language: Language): LadderTexts {
  const names = Object.keys(LADDER_TEXTS) as Array<keyof LadderTexts>;
  return Object.fromEntries(names.map((name) => [name, TEXTS[`ladder.${name}`][language]])) as LadderTexts;
}
