-- Point reads of random keys over kept-alive connections, for wrk.
--
-- wrk ... --script point_reads.lua URL -- PATH KEYS STRIDE PAUSE_MS
--
-- PATH is the path up to the number of a key, percent-encoded. There are KEYS numbers, STRIDE apart. Each connection
-- pauses for PAUSE_MS on average before each request; 0 is a closed loop.

local head, tail, keys, stride

function init(words)
   keys, stride = tonumber(words[2]), tonumber(words[3])
   local pause_ms = tonumber(words[4])
   -- Built by hand: wrk's formatting would cost as much as a read.
   head = "GET " .. words[1]
   tail = " HTTP/1.1\r\nHost: " .. wrk.headers["Host"] .. "\r\n\r\n"
   math.randomseed(os.time())
   if pause_ms > 0 then
      function delay()
         return math.random(0, 2 * pause_ms)
      end
   end
end

function request()
   return head .. math.random(0, keys - 1) * stride .. tail
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format(
      '\n{"requests":%d,"seconds":%.6f,"p50_ms":%.4f,"p99_ms":%.4f,"refused":%d,"broken":%d}\n',
      summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
      errors.status, errors.connect + errors.read + errors.write + errors.timeout
   ))
end
