/* simd_table.c - the bind function of every opcode, from opcodes.def. */
#include "device/ptx/simd.h"

#define STRING2(x) #x
#define STRING(x) STRING2(x)

#define INSN(id, name, types, types2, operands, allow, require, handler, what) \
    bool BIND(handler)(struct xinsn * x, const struct ptx_insn *in);
#include "device/ptx/opcodes.def"
#undef INSN

static const bind_fn binds[PTX_OP_COUNT] = {
#define INSN(id, name, types, types2, operands, allow, require, handler, what) \
    [PTX_OP_##id] = BIND(handler),
#include "device/ptx/opcodes.def"
#undef INSN
};

const struct isa CAT(isa, ISA) = {STRING(ISA), binds, ISA_NAME(count_events)};
