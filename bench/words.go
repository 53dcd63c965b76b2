package main

import (
	"math"
	"strings"
)

// benchWords are what pages are made of.
var benchWords = strings.Fields(`
able ableer ableful above aboveed aboveness across acrossed acrosstion add addtion after afterable afterly again
agained againtion age ageable ageing air airable airful all alling alltion along alongly alongness also alsoed alsoful
always alwaysing alwaysment animal animaling answer answering answers apple appleable applely area areaable areaing
around aroundly arounds art arttion ask askly asks back backly backment ball ballly balltion base baseing baseness
bear bearable bears beat beated beater bed beded bedness before beforement befores begin beginable begins behind
behindly behindness bell bellful bellness best bests besttion better betterable betterful between betweening
betweention big bigable bigly bird birdable birder black blackment blacks blue blueed bluement boat boats boattion
body bodyed bodyer book bookable books both bothment bothtion bottom bottoming bottomtion bound bounding boundness box
boxful boy boyable boyful branch brancher bread breadly breads break breaking breakly bright brights bring bringable
bringly brother brotherment brothers brown brownful brownment build buildness buildtion busy busyful busys buy buyable
buying call caller calls camp camps capital capitalable capitally car care careful carement caring carry carryly
carrys cartion case caseable cases catch catchment catchtion cause causeable causement cell celling cells center
centerful centers chair chairful chairment chance chanceful chancetion change changeing changely chart charter charts
check checker checkful chief chiefed chiefs child childing childness choose chooseed circle circleing circletion city
citying cityness claim claimly claimness class classed classful clean cleaner cleanment clear cleared clearness climb
climber clock clockness clocks close closeer closeness cloud cloudness cloudtion coast coastment coasttion coat coated
coattion cold colding coldness collect collectable collectment color colorable colorly column columned columnness come
comeness comes common commonful commonly compare compareable compareing complete completeing completely consider
considerable considerer contain container containing continue continues continuetion control controlable controls cook
cookly cooks cool coolly cooltion copy copying copys corn cornable cornful correct correctable correctment cost
costing costness count counter countly country countrying countryness course courseed cover coverness cross crossable
crosser crowd crowdful crowdness cry cryer crying current currenting currents cut cutful cutly dance danceful
dancetion danger dangerer dangerful dark darking darks day dayable dayly deal dealed dealment decide decideful
decidely deep deepable deepful degree degreely degreetion depend dependable depended describe describeness describes
desert deserting deserttion design designful designment detail detailable detailness develop developer developing
differ differly differment dinner dinnerer dinnerful direct directable directment discuss discussly discussness
distant distantable distanted divide dividement divides doctor doctors doctortion dollar dollarly dollars door doored
dooring double doubleed doubleer draw drawer dream dreamly dreams dress dressment dressness drink drinkful drinks
drive drivement driveness drop dropment dry dryed dryness during duringful duringly each eacher eachtion early
earlyful earlys earth earthed earthment ease easeable easeing east eastable easted edge edgeer effect effected
effectment egg eggful eight eightable eighted electric electricful electrics element elementful elemently end ended
endness energy energyment energyness engine engineful engines enough enoughed enoughtion enter entered enterness equal
equaling equalness even evenful evening eveninged eveninging event eventable evented ever evering everly exact
exactful exactly example exampleable exampleer except excepted excepttion excite exciteer excitely exercise exerciseed
exerciseer expect expectable explain explainness explains eye eyeness eyes face facement facetion fact facted factly
fair fairing fairment fall falling family familyful familyness famous famousment famoustion far farable farm farmable
farmed farment fast fasted fastment father fatherful fathertion favor favored favorness fear fearful fearly feed feeds
feedtion feel feelment feelness field fielder fields fig fight fightly figly figness figure figureed figurement fill
filled fillness final finaled finaltion find findful findment fine fineable finely finger fingering fingerness finish
finisher finishment fire fireful firement first firstly firstness fish fished fishment fit fitful fits five fiveful
flat flated flatly floor flooring floorly flow flowable flower flowered flowerness flowly follow followed follows food
fooded fooding foot footing footness force forcement forcetion forest forester foresttion form formed forms forward
forwarded forwardment found founder founds four fourer fraction fractioner fractionment free freeed freeness fresh
freshful freshs friend friender friendness front fronter frontly fruit fruiting fruits full fullful fullment game
gamely games garden gardener gardenness gas gasable gass gather gatherer gathering general generally generalness
gentle gentleed gentletion glad gladable glads glass glassness glasss gold golds goldtion good gooding goodtion govern
governable government grand grander grandness grass grassing grasstion great greatable greatful green greening ground
groundful groundment group grouper groupful grow grower guess guessness guide guideable guideful hand handable hander
happen happened happenful happy happyly happytion hard harder harding hat hatment hats head heads headtion hear hearly
heart heartment hearttion heat heatly heattion heavy heavyable heavyment help helpful helps high highly highness hill
hilled hilling history historyment historys hold holder holds hole holely holeness home homeness hope hopement hopes
horse horseer horsetion hot hoted hotful hour houred hourful house houseful houses huge hugeable hugeer human humaner
humanness hundred hundredable hundredly hunt huntful hunting hurry hurryable hurrytion ice iceable icement idea ideaer
ideas imagine imagineing imagines inch inched inchs include includeed includeness industry industryed industryness
insect insecter insectful instant instanted instanttion instrument instrumentable instrumently interest interestable
iron ironer ironment island islander islandtion join joinful jointion joy joyed joyly jump jumpable jumpful just
justable justs keep keeped keepness key keyly keyness kind kindable kinds king kinging kingly knew knews knewtion know
knowful knowing lake lakeful lakeing land landly landness language languageer languagely large largeer largeness last
lastly lasts late lateness laugh laughful laughness law lawer lawtion lay layment lays lead leadable leadtion learn
learned learnly least leastable leastful leave leavely leaveness left lefted lefting length lengthed lengthful less
lessing lesss letter letterer letterness level leveled levels lie lieful liement life lifeable lifeness lift liftment
lifts light lightment lights line lineed lineing list listen listenment listenness listtion little littleable littles
live liveful livement local localed localtion locate locateable log logly logs lone loneing loneness long longful
longs look lookly looktion lost lostful losts lot lotable lotness loud louder loudtion love loveful loves low lowly
lowment machine machineing machines magnet magnetable magnetful main mainable major majorful majorment make makeed
makeful map maply maption mark market marketable marketer marking markness mass massable massness master mastered
masterer match matchful matching material materialment materialness matter matterable matters mean meaner meanness
measure measureness measuretion meat meater meattion meet meets meettion melody melodying melodyness metal metaled
metals method methodable methodful middle middleed middlement mile mileed miletion milk milker milking million
millioner millions mind mindable minded mine mineful mineness minute minutely minuteness miss missly misss mix mixly
mixment modern moderned modernness molecule moleculeed molecules moment momentment momenttion money moneys month
monther monthing moon moonness moons morning morningment morningness most mostful mostly mother motherable mothers
motion motionable motioner mount mountain mountainful mountainment mountness mounttion mouth mouthly mouthness move
moveful movely much muchful muching multiply multiplyable multiplyment music musicable musicly name namely nameness
nation nationed nationer nature natureful naturetion near nearer nearful neck neckful neckness need needs needtion
neighbor neighborer never neverer nevertion new newment newness night nightable nightly nine nineed ninely noise
noiseed noiseness noon nooned noonly north northable northment nose noseed nosetion note noteer noteing noun nounful
nouning number numbering numberly object objecting objecttion observe observeful observes occur occurment occurtion
ocean oceaned oceanness offer offerer offerful office officeed officely oil oilable oilly old oldtion once onceable
onceer open openly operate operateness operatetion opposite oppositeful opposites order orderable orderly organ
organness organtion original originalment originaltion other othered otherful oxygen oxygened oxygenly
`)

// usualWords has each word as often as it is met: word n of a language about once
// in n words (Zipf).
var usualWords = func() (all []string) {
	for i := range 1 << 12 {
		n := math.Exp(float64(i) / (1 << 12) * math.Log(float64(len(benchWords))))
		all = append(all, benchWords[int(n-1)*509%len(benchWords)])
	}
	return all
}()
