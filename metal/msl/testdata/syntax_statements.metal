// Errors in statements and expressions: each is found, and none hides the next.
#include <metal_stdlib>
using namespace metal;

kernel void first(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float a = 1 /* ERROR "MSL0201: expected ';' after a declaration, found the keyword 'float'" */
    float b = 2;
    x[i = a; /* ERROR "MSL0201: expected ']' after an index" */
    if (i > 3 { b = 1; } /* ERROR "MSL0201: expected '\)' after the condition, found '{'" */
    flot c = 3; /* ERROR "MSL0203: unknown type name 'flot'" */
    int d = float4 + 1; /* ERROR "MSL0209: 'float4' is a type" */
    for (int j = 0, j < 3; j++) {} /* ERROR "MSL0201" */
    goto done; /* ERROR "MSL0204: 'goto' is not part" */
    done: return; /* ERROR "MSL0204: labels" */
    break; /* ERROR "MSL0210: break outside a loop" */
    case 3: ; /* ERROR "MSL0210: case outside switch" */
    a = ; /* ERROR "MSL0202: expected an expression after '=', found ';'" */
    a = b +* ; /* ERROR "MSL0202: expected an expression" */
    a = 09; /* ERROR "MSL0104: '09' has a digit that is not octal" */
    a = 'ab\q'; /* ERROR "MSL0105.*unknown escape" */
    a = @; /* ERROR "MSL0101: unexpected character" */ /* ERROR "MSL0202" */
    int *p = new int; /* ERROR "MSL0204: 'new'" */
    try { } /* ERROR "MSL0204: 'try'" */
    while (i) { continue; } do { } whle (1); /* ERROR "MSL0201: expected 'while'" */
    b = f(1, ); /* ERROR "MSL0202" */
    b = (1, 2; /* ERROR "MSL0201: expected '\)' to close a parenthesis" */
    b = a ? 1; /* ERROR "MSL0201: expected ':'" */
    long float e; /* ERROR "MSL0206: these words make no type together" */
    int float g; /* ERROR "MSL0206" */
    float h[3; /* ERROR "MSL0207: expected ']'" */
    throw 3; /* ERROR "MSL0204" */
    static_assert(true; /* ERROR "MSL0201" */
    device constant float *q; /* ERROR "MSL0206: two address spaces: device and constant" */
    S<int> s; /* ERROR "MSL0203|MSL0209|MSL0201|MSL0202" */
}

kernel void second() { return; }
