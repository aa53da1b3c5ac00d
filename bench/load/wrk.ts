/** Closed loops by wrk, which takes less of the machine from the servers than a generator in Node. */
import { spawnSync } from 'node:child_process';
import { StartError } from '../../src/lifecycle.js';
import type { LoadPlan, LoadResult } from './plan.js';

export function wrkVersion(): string | null {
  const { stdout, stderr, error } = spawnSync('wrk', ['--version'], { encoding: 'utf8' });
  if (error !== undefined) return null;
  return /^wrk (\S+)/m.exec(`${stdout}${stderr}`)?.[1] ?? null;
}

/** Arguments for wrk to put a plan's load on; the last ones are for the script. */
export const wrkArguments = (plan: LoadPlan, script: string): string[] => [
  '--threads=1',
  `--connections=${plan.connections}`,
  `--duration=${plan.seconds}s`,
  `--script=${script}`,
  `http://127.0.0.1:${plan.port}`,
  '--',
  plan.pool,
  `${plan.firstAnswer}`,
];

/** wrk asks for a request before it begins, to look at it. */
const trials = 1;

interface WrkReport {
  readonly requests: number;
  readonly microseconds: number;
  readonly errors: number;
}

/**
 * wrk drops the requests under way when its time is over, so some answers may be counted that it never saw.
 * @param answersPerRequest the same for all requests
 * @throws where a request failed
 */
export function readWrk(output: string, plan: LoadPlan, answersPerRequest: number): LoadResult {
  const line = output.trimEnd().split('\n').at(-1) as string;
  const { requests, microseconds, errors }: WrkReport = JSON.parse(line);
  if (errors > 0) throw new StartError(`${errors} of ${requests} requests failed`);
  return {
    requests,
    answers: requests * answersPerRequest,
    unanswered: plan.connections * answersPerRequest,
    refused: 0,
    offered: null,
    numbersUsed: (requests + plan.connections + trials) * answersPerRequest,
    seconds: microseconds / 1e6,
    latency: null,
  };
}

/** Reads the pool, cuts each request at its holes and puts a number into them; wrk is started with one thread. */
export const wrkScript = (hole: string): string => `
local parts, lengths, place, number = {}, {}, 0, 0

local function cut(text)
  local pieces, from = {}, 1
  while true do
    local at = string.find(text, '${hole}', from, true)
    if not at then break end
    pieces[#pieces + 1] = string.sub(text, from, at - 1)
    from = at + ${hole.length}
  end
  pieces[#pieces + 1] = string.sub(text, from)
  return pieces
end

function init(args)
  local file = assert(io.open(args[1] .. '/requests', 'rb'))
  for line in io.lines(args[1] .. '/index') do
    parts[#parts + 1] = cut(file:read(tonumber(string.match(line, '^%d+'))))
  end
  file:close()
  number = tonumber(args[2])
end

function request()
  place = place % #parts + 1
  number = number + 1
  return table.concat(parts[place], string.format('%0${hole.length}.0f', number - 1))
end

function done(summary)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format('{"requests":%d,"microseconds":%d,"errors":%d}\\n', summary.requests, summary.duration, errors))
end
`;
