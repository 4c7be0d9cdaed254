# Runs the cases that TestWrite of metal/ptx wrote on an NVIDIA GPU, and compares what buffers then hold, byte for byte.
# Needs python3 and NVIDIA's driver only. run.py FOLDER [workers] [optimisation level of the driver's compiler]
import ctypes, gzip, json, os, subprocess, sys, time

folder, workers, level = sys.argv[1], int((sys.argv[2:] or ["8"])[0]), int((sys.argv[3:] or ["4"])[0])


def start():  # one process a worker; one that lost its context is started again behind the case that lost it
    at, done, live = [0] * workers, [False] * workers, {}
    logs = [open(os.path.join(folder, f"log{w}"), "w") for w in range(workers)]
    while not all(done):
        for w in range(workers):
            if done[w]:
                continue
            if w not in live:
                live[w] = subprocess.Popen([sys.executable, __file__, folder, str(workers), str(level), "work", str(w), str(at[w])],
                                           stdout=logs[w], stderr=logs[w])
            rc = live[w].poll()
            if rc is None:
                continue
            del live[w]
            lines = open(logs[w].name).read().split("\n")
            at[w] = max([int(l.split()[1]) + 1 for l in lines if l.startswith("case ")] or [at[w] + 1])
            done[w] = rc == 0
        time.sleep(0.05)
    total = good = 0
    for f in logs:
        for l in open(f.name).read().split("\n"):
            total += l.startswith("case ")
            good += l.startswith("case ") and l.endswith(" same")
            if l and not l.endswith(" same"):
                print(l[:300])
    print(f"{good} of {total} cases the same")


def work(w, first):
    cases = json.load(open(os.path.join(folder, "cases.json")))
    data = gzip.open(os.path.join(folder, "bytes.gz")).read()
    cu = ctypes.CDLL("libcuda.so.1")
    u64, vp = ctypes.c_uint64, ctypes.c_void_p

    def must(rc, what):
        if rc:
            print(what, "rc", rc, flush=True)
            os._exit(1)

    ctx, dev, side = vp(), ctypes.c_int(), vp()
    must(cu.cuInit(0), "init")
    must(cu.cuDeviceGet(ctypes.byref(dev), 0), "device")
    must(cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), dev), "context")
    must(cu.cuCtxSetCurrent(ctx), "current")
    must(cu.cuStreamCreate(ctypes.byref(side), 1), "stream")

    def piece(p):
        return data[p[0]:p[0] + p[1]]

    for n in range(first, len(cases)):
        if n % workers != w:
            continue
        c = cases[n]
        log = ctypes.create_string_buffer(8192)
        opts = (ctypes.c_int * 3)(5, 6, 7)
        # What is long takes minutes at the usual level.
        vals = (vp * 3)(ctypes.cast(log, vp), 8192, level if c["Text"][1] < 60000 else min(1, level))
        mod, fn, t0 = vp(), vp(), time.time()
        rc = cu.cuModuleLoadDataEx(ctypes.byref(mod), piece(c["Text"]) + b"\0", 3, opts, vals)
        took = time.time() - t0
        if rc:
            print("case", n, c["Name"], "text rc", rc, log.value.decode()[:400].replace("\n", " "), flush=True)
            continue
        must(cu.cuModuleGetFunction(ctypes.byref(fn), mod, c["Entry"].encode()), "function")
        if c["Shared"] > 48 << 10:
            must(cu.cuFuncSetAttribute(fn, 8, c["Shared"]), "shared")
        args = bytearray(piece(c["Args"]))
        held = []

        def alloc(b):  # with room around it that must stay what it is
            p = u64()
            must(cu.cuMemAlloc_v2(ctypes.byref(p), len(b) + 512), "alloc")
            held.append(p)
            must(cu.cuMemcpyHtoD_v2(p, b"\xa5" * 256 + b + b"\xa5" * 256, len(b) + 512), "copy in")
            return p.value + 256

        control = alloc(bytes(24))
        args[0:8] = control.to_bytes(8, "little")
        places = []
        for before, after, where in c["Buffers"]:
            p = alloc(piece(before))
            places.append(p)
            args[where[0]:where[0] + 8] = p.to_bytes(8, "little")
        raw = (ctypes.c_char * len(args)).from_buffer(args)
        params = (vp * 1)(ctypes.addressof(raw))
        must(cu.cuLaunchKernel(fn, *c["Blocks"], c["Block"], 1, 1, c["Shared"], None, params, None), f"case {n} {c['Name']} launch")
        t0, asked = time.time(), False
        while True:
            rc = cu.cuStreamQuery(None)
            if rc == 0:
                break
            if rc != 600:
                print("case", n, c["Name"], "run rc", rc, flush=True)
                os._exit(1)
            if time.time() - t0 > 8:
                print("case", n, c["Name"], "does not end", flush=True)
                os._exit(1)
            if not asked and time.time() - t0 > (0.2 if c["Endless"] else 5):
                asked = True
                must(cu.cuMemcpyHtoDAsync_v2(u64(control), b"\1\0\0\0", 4, side), "stop")

        def read(p, size):
            b = ctypes.create_string_buffer(size + 512)
            must(cu.cuMemcpyDtoH_v2(b, u64(p - 256), size + 512), "copy out")
            return b.raw[256:256 + size], b.raw[:256] + b.raw[256 + size:]

        what = []
        record, _ = read(control, 24)
        taken = int.from_bytes(record[4:8], "little")
        if asked != c["Endless"]:
            what.append("was stopped" if asked else "ended by itself")
        if bool(taken) != c["Fault"]:
            what.append(f"fault {record.hex()}" if taken else "no fault")
        if c["Pointer"] and int.from_bytes(record[16:24], "little") != c["Pointer"]:
            what.append(f"fault at {record.hex()}")
        if taken and int.from_bytes(record[8:12], "little") != 7:
            what.append("fault of another launch")
        for i, (p, (before, after, where)) in enumerate(zip(places, c["Buffers"])):
            got, around = read(p, after[1])
            if around != b"\xa5" * 512:
                what.append(f"buffer {i}: written outside")
            if c["Fault"] or c["Endless"]:
                continue
            want = piece(after)
            if got != want:
                at = next(k for k in range(len(want)) if got[k] != want[k])
                bad = sum(got[k:k + 8] != want[k:k + 8] for k in range(0, len(want), 8))
                at -= at % 8
                what.append(f"buffer {i}: {bad} of {len(want) // 8} words differ, first {at // 8}: {got[at:at + 8].hex()} want {want[at:at + 8].hex()}")
        print("case", n, c["Name"], f"{took:.2f}s", "; ".join(what) or "same", flush=True)
        for p in held:
            cu.cuMemFree_v2(p)
        cu.cuModuleUnload(mod)
    os._exit(0)


if len(sys.argv) > 4:
    work(int(sys.argv[5]), int(sys.argv[6]))
else:
    start()
