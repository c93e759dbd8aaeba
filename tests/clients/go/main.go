// What a Go program may do with onnxruntime_go, printed as lines "what = words".
//
//	go run . LIBRARY MODELS
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

var models string

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func model(name string) string { return filepath.Join(models, name+".onnx") }

// Whether the call failed, as it has to.
func refused(what string, err error) {
	fmt.Printf("refused %s = %v\n", what, err != nil)
}

func ramp(count int) []float32 {
	values := make([]float32, count)
	for i := range values {
		values[i] = float32(i%7-3) * 0.25
	}
	return values
}

func show[T ort.TensorData](what string, tensor *ort.Tensor[T]) {
	fmt.Printf("%s = %v", what, tensor.GetShape())
	for _, value := range tensor.GetData() {
		fmt.Printf(" %v", value)
	}
	fmt.Println()
}

func ports() {
	for _, name := range []string{"mlp", "strings", "sequence_out", "map_out", "map_in", "lora"} {
		inputs, outputs, err := ort.GetInputOutputInfo(model(name))
		must(err)
		for _, info := range append(inputs, outputs...) {
			fmt.Printf("port %s %s = %v %v %v\n", name, info.Name, info.OrtValueType, info.DataType,
				info.Dimensions)
		}
	}
	_, _, err := ort.GetInputOutputInfo(model("absent"))
	refused("ports of a missing file", err)
}

func metadata() {
	session, err := ort.NewDynamicAdvancedSession(model("mlp"), []string{"x"}, []string{"y"}, nil)
	must(err)
	defer session.Destroy()
	data, err := session.GetModelMetadata()
	must(err)
	defer data.Destroy()
	producer, err := data.GetProducerName()
	must(err)
	graph, err := data.GetGraphName()
	must(err)
	domain, err := data.GetDomain()
	must(err)
	text, err := data.GetDescription()
	must(err)
	version, err := data.GetVersion()
	must(err)
	fmt.Printf("metadata = '%s' '%s' '%s' '%s' %d\n", producer, graph, domain, text, version)
	keys, err := data.GetCustomMetadataMapKeys()
	must(err)
	fmt.Printf("metadata keys = %d\n", len(keys))
	for _, key := range []string{"author", "empty", "absent"} {
		value, found, err := data.LookupCustomMetadataMap(key)
		must(err)
		fmt.Printf("metadata %s = '%s' %v\n", key, value, found)
	}
}

func identity[T ort.TensorData](name string, values []T) {
	in, err := ort.NewTensor(ort.NewShape(int64(len(values))), values)
	must(err)
	defer in.Destroy()
	out, err := ort.NewEmptyTensor[T](ort.NewShape(int64(len(values))))
	must(err)
	defer out.Destroy()
	session, err := ort.NewSession[T](model("identity_"+name), []string{"x"}, []string{"y"},
		[]*ort.Tensor[T]{in}, []*ort.Tensor[T]{out})
	must(err)
	defer session.Destroy()
	must(session.Run())
	show("identity "+name, out)
}

// A type that Go has no tensors of: bytes, which come back as they went in.
func identityBytes(name string, kind ort.TensorElementDataType, bytes []byte, count int64) {
	in, err := ort.NewCustomDataTensor(ort.NewShape(count), bytes, kind)
	must(err)
	defer in.Destroy()
	out, err := ort.NewCustomDataTensor(ort.NewShape(count), make([]byte, len(bytes)), kind)
	must(err)
	defer out.Destroy()
	session, err := ort.NewAdvancedSession(model("identity_"+name), []string{"x"}, []string{"y"},
		[]ort.Value{in}, []ort.Value{out}, nil)
	must(err)
	defer session.Destroy()
	must(session.Run())
	fmt.Printf("identity %s = %v\n", name, out.GetData())
}

func types() {
	identity("float", []float32{1, -2, float32(math.Inf(1))})
	identity("double", []float64{1e300, -2})
	identity("int8", []int8{-128, 127})
	identity("int16", []int16{-32768, 32767})
	identity("int32", []int32{-1 << 31, 1<<31 - 1})
	identity("int64", []int64{-1 << 63, 1<<63 - 1})
	identity("uint8", []uint8{0, 255})
	identity("uint16", []uint16{0, 65535})
	identity("uint32", []uint32{0, 1<<32 - 1})
	identity("uint64", []uint64{0, 1<<64 - 1})
	identity("bool", []bool{true, false, true})
	identityBytes("float16", ort.TensorElementDataTypeFloat16, []byte{0, 60, 0, 192}, 2)
	identityBytes("bfloat16", ort.TensorElementDataTypeBFloat16, []byte{128, 63, 0, 192}, 2)
}

func dynamic() {
	session, err := ort.NewDynamicAdvancedSession(model("mlp"), []string{"x"}, []string{"y"}, nil)
	must(err)
	defer session.Destroy()
	for _, rows := range []int64{1, 3, 32} {
		in, err := ort.NewTensor(ort.NewShape(rows, 8), ramp(int(rows)*8))
		must(err)
		outputs := []ort.Value{nil}
		must(session.Run([]ort.Value{in}, outputs))
		show(fmt.Sprintf("mlp of %d rows", rows), outputs[0].(*ort.Tensor[float32]))
		outputs[0].Destroy()
		in.Destroy()
	}
	wrong, err := ort.NewTensor(ort.NewShape(16), ramp(16))
	must(err)
	defer wrong.Destroy()
	refused("another rank", session.Run([]ort.Value{wrong}, []ort.Value{nil}))
	whole, err := ort.NewTensor(ort.NewShape(2, 8), make([]int32, 16))
	must(err)
	defer whole.Destroy()
	refused("another type", session.Run([]ort.Value{whole}, []ort.Value{nil}))
	_, err = ort.NewDynamicAdvancedSession(model("garbage"), []string{"x"}, []string{"y"}, nil)
	refused("garbage", err)
	_, err = ort.NewDynamicAdvancedSession(model("unknown_operator"), []string{"x"}, []string{"y"},
		nil)
	refused("an unknown operator", err)
}

func memory() {
	bytes, err := os.ReadFile(model("mlp"))
	must(err)
	in, err := ort.NewTensor(ort.NewShape(2, 8), ramp(16))
	must(err)
	defer in.Destroy()
	out, err := ort.NewEmptyTensor[float32](ort.NewShape(2, 4))
	must(err)
	defer out.Destroy()
	options, err := ort.NewSessionOptions()
	must(err)
	must(options.SetIntraOpNumThreads(2))
	must(options.SetInterOpNumThreads(1))
	must(options.SetCpuMemArena(false))
	must(options.SetMemPattern(false))
	must(options.SetExecutionMode(ort.ExecutionModeParallel))
	must(options.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableBasic))
	must(options.SetLogSeverityLevel(ort.LoggingLevelError))
	must(options.AddSessionConfigEntry("session.set_denormal_as_zero", "1"))
	session, err := ort.NewAdvancedSessionWithONNXData(bytes, []string{"x"}, []string{"y"},
		[]ort.Value{in}, []ort.Value{out}, options)
	must(err)
	must(options.Destroy())
	must(session.Run())
	show("model in memory", out)
	in.GetData()[0] = 5
	must(session.Run())
	show("model in memory again", out)
	must(session.Destroy())
}

func containers() {
	session, err := ort.NewDynamicAdvancedSession(model("sequence_out"), []string{"a", "b"},
		[]string{"s"}, nil)
	must(err)
	a, err := ort.NewTensor(ort.NewShape(2), ramp(2))
	must(err)
	b, err := ort.NewTensor(ort.NewShape(3), ramp(3))
	must(err)
	outputs := []ort.Value{nil}
	must(session.Run([]ort.Value{a, b}, outputs))
	made := outputs[0].(*ort.Sequence)
	items, err := made.GetValues()
	must(err)
	for i, item := range items {
		show(fmt.Sprintf("item %d", i), item.(*ort.Tensor[float32]))
	}
	must(session.Destroy())

	joiner, err := ort.NewDynamicAdvancedSession(model("sequence_in"), []string{"s"}, []string{"y"},
		nil)
	must(err)
	own, err := ort.NewSequence([]ort.Value{b, a, b})
	must(err)
	a.Destroy()
	b.Destroy()
	joined := []ort.Value{nil}
	must(joiner.Run([]ort.Value{own}, joined))
	show("joined", joined[0].(*ort.Tensor[float32]))
	must(own.Destroy())
	must(joiner.Destroy())

	zip, err := ort.NewDynamicAdvancedSession(model("map_out"), []string{"x"}, []string{"z"}, nil)
	must(err)
	scores, err := ort.NewTensor(ort.NewShape(2, 3), ramp(6))
	must(err)
	zipped := []ort.Value{nil}
	must(zip.Run([]ort.Value{scores}, zipped))
	maps, err := zipped[0].(*ort.Sequence).GetValues()
	must(err)
	for i, entry := range maps {
		keys, values, err := entry.(*ort.Map).GetKeysAndValues()
		must(err)
		texts, err := keys.(*ort.StringTensor).GetContents()
		must(err)
		show(fmt.Sprintf("map %d of %s", i, strings.Join(texts, "+")), values.(*ort.Tensor[float32]))
	}
	must(zip.Destroy())

	vectorize, err := ort.NewDynamicAdvancedSession(model("map_in"), []string{"d"}, []string{"y"},
		nil)
	must(err)
	dictionary, err := ort.NewMapFromGoMap(map[int64]float32{9: 0.5, 3: 1.5, 77: 8})
	must(err)
	vector := []ort.Value{nil}
	must(vectorize.Run([]ort.Value{dictionary}, vector))
	show("vector", vector[0].(*ort.Tensor[float32]))
	must(vectorize.Destroy())
}

func texts() {
	session, err := ort.NewDynamicAdvancedSession(model("strings"), []string{"a", "b"},
		[]string{"y"}, nil)
	must(err)
	defer session.Destroy()
	left, err := ort.NewStringTensor(ort.NewShape(3))
	must(err)
	must(left.SetContents([]string{"", "größe", strings.Repeat("long ", 9)}))
	right, err := ort.NewStringTensor(ort.NewShape(3))
	must(err)
	must(right.SetContents([]string{"-", "ω", "!"}))
	must(right.SetElement(0, "set"))
	outputs := []ort.Value{nil}
	must(session.Run([]ort.Value{left, right}, outputs))
	contents, err := outputs[0].(*ort.StringTensor).GetContents()
	must(err)
	fmt.Printf("texts = %q\n", contents)
	one, err := outputs[0].(*ort.StringTensor).GetElement(1)
	must(err)
	fmt.Printf("text = %q\n", one)
	refused("text outside", left.SetElement(7, "x"))
}

func binding() {
	session, err := ort.NewDynamicAdvancedSession(model("mlp"), []string{"x"}, []string{"y"}, nil)
	must(err)
	defer session.Destroy()
	bound, err := session.CreateIoBinding()
	must(err)
	defer bound.Destroy()
	in, err := ort.NewTensor(ort.NewShape(2, 8), ramp(16))
	must(err)
	out, err := ort.NewEmptyTensor[float32](ort.NewShape(2, 4))
	must(err)
	must(bound.BindInput("x", in))
	must(bound.BindOutput("y", out))
	must(session.RunWithBinding(bound))
	show("bound output", out)
	names, err := bound.GetBoundOutputNames()
	must(err)
	fmt.Printf("bound names = %v\n", names)
	bound.ClearBoundOutputs()
	bound.ClearBoundInputs()
	refused("nothing bound", session.RunWithBinding(bound))
}

func cancelling() {
	session, err := ort.NewDynamicAdvancedSession(model("loop"), []string{"n", "x"}, []string{"y"},
		nil)
	must(err)
	defer session.Destroy()
	steps, err := ort.NewScalar(int64(1) << 40)
	must(err)
	state, err := ort.NewTensor(ort.NewShape(64, 64), ramp(64*64))
	must(err)
	options, err := ort.NewRunOptions()
	must(err)
	defer options.Destroy()
	go func() {
		time.Sleep(100 * time.Millisecond)
		must(options.Terminate())
	}()
	refused("terminated",
		session.RunWithOptions([]ort.Value{steps, state}, []ort.Value{nil}, options))
	must(options.UnsetTerminate())
	few, err := ort.NewScalar(int64(3))
	must(err)
	outputs := []ort.Value{nil}
	must(session.RunWithOptions([]ort.Value{few, state}, outputs, options))
	fmt.Printf("after the end = %v\n", outputs[0].(*ort.Tensor[float32]).GetData()[:4])
}

func threads() {
	session, err := ort.NewDynamicAdvancedSession(model("mlp"), []string{"x"}, []string{"y"}, nil)
	must(err)
	var group sync.WaitGroup
	var sums [8]float64
	for worker := range sums {
		group.Add(1)
		go func() {
			defer group.Done()
			in, err := ort.NewTensor(ort.NewShape(2, 8), ramp(16))
			must(err)
			defer in.Destroy()
			for i := 0; i < 100; i++ {
				outputs := []ort.Value{nil}
				must(session.Run([]ort.Value{in}, outputs))
				for _, value := range outputs[0].(*ort.Tensor[float32]).GetData() {
					sums[worker] += float64(value)
				}
				outputs[0].Destroy()
			}
		}()
	}
	group.Wait()
	must(session.Destroy())
	fmt.Printf("threads = %v\n", sums)
}

// The feeds are lines "name type dims...", each with a file of bytes.
func feed(folder string) (names []string, values []ort.Value, err error) {
	text, err := os.ReadFile(filepath.Join(folder, "feed.txt"))
	if err != nil {
		return nil, nil, err
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		var dims []int64
		for _, word := range words[2:] {
			dim, err := strconv.ParseInt(word, 10, 64)
			must(err)
			dims = append(dims, dim)
		}
		bytes, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("%d.bin", i)))
		must(err)
		var value ort.Value
		switch words[1] {
		case "float32":
			numbers := make([]float32, len(bytes)/4)
			for j := range numbers {
				numbers[j] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*j:]))
			}
			value, err = ort.NewTensor(ort.NewShape(dims...), numbers)
		case "int64":
			numbers := make([]int64, len(bytes)/8)
			for j := range numbers {
				numbers[j] = int64(binary.LittleEndian.Uint64(bytes[8*j:]))
			}
			value, err = ort.NewTensor(ort.NewShape(dims...), numbers)
		case "int32":
			numbers := make([]int32, len(bytes)/4)
			for j := range numbers {
				numbers[j] = int32(binary.LittleEndian.Uint32(bytes[4*j:]))
			}
			value, err = ort.NewTensor(ort.NewShape(dims...), numbers)
		default:
			err = errors.New("no feed of " + words[1])
		}
		if len(dims) == 0 {
			value, err = ort.NewScalar(int64(binary.LittleEndian.Uint64(bytes)))
		}
		must(err)
		names = append(names, words[0])
		values = append(values, value)
	}
	return names, values, nil
}

func larger() {
	list, err := os.ReadFile(filepath.Join(models, "larger.txt"))
	must(err)
	for _, name := range strings.Fields(string(list)) {
		folder := filepath.Join(models, "larger", name)
		path, err := os.ReadFile(filepath.Join(folder, "path.txt"))
		must(err)
		names, values, err := feed(folder)
		must(err)
		_, outputs, err := ort.GetInputOutputInfo(string(path))
		must(err)
		session, err := ort.NewDynamicAdvancedSession(string(path), names,
			[]string{outputs[0].Name}, nil)
		must(err)
		results := []ort.Value{nil}
		must(session.Run(values, results))
		if tensor, ok := results[0].(*ort.Tensor[float32]); ok {
			data := tensor.GetData()
			fmt.Printf("%s = %v %v\n", name, tensor.GetShape(), data[:min(len(data), 32)])
		}
		must(session.Destroy())
	}
}

func main() {
	ort.SetSharedLibraryPath(os.Args[1])
	models = os.Args[2]
	for round := 0; round < 2; round++ {
		must(ort.InitializeEnvironment(ort.WithLogLevelFatal()))
		must(ort.DisableTelemetry())
		if round == 1 {
			types()
			must(ort.DestroyEnvironment())
			break
		}
		fmt.Printf("version = %s\n", ort.GetVersion())
		for _, check := range []func(){ports, metadata, types, dynamic, memory, containers, texts,
			binding, cancelling, threads, larger} {
			check()
		}
		fmt.Printf("training = %v\n", ort.IsTrainingSupported())
		must(ort.DestroyEnvironment())
	}
	fmt.Println("end = 1")
}
